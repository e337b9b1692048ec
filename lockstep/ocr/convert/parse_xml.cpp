// Labels in XML, parsed by GLib.
#include <fmt/format.h>
#include <glib.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "lockstep/ocr/convert/lines.h"
#include "lockstep/ocr/convert/parse_set.h"

namespace lockstep::ocr {
namespace {

/// The two texts of a CTW1500 box; the first of each counts.
struct XmlBox {
  std::optional<std::string> label, corners;
};

/// The open elements, outermost first, and the boxes found so far.
struct XmlWalk {
  std::vector<std::string> open;
  std::vector<XmlBox> boxes;

  bool is_in_box() const { return open.size() >= 3 && open[1] == "image" && open[2] == "box"; }
};

void on_start(GMarkupParseContext* /*context*/, const gchar* name, const gchar** /*names*/,
              const gchar** /*values*/, gpointer data, GError** /*error*/) {
  auto& walk = *static_cast<XmlWalk*>(data);
  walk.open.emplace_back(name);
  if (walk.is_in_box() && walk.open.size() == 3) walk.boxes.emplace_back();
}

void on_end(GMarkupParseContext* /*context*/, const gchar* /*name*/, gpointer data,
            GError** /*error*/) {
  static_cast<XmlWalk*>(data)->open.pop_back();
}

void on_text(GMarkupParseContext* /*context*/, const gchar* text, gsize size, gpointer data,
             GError** /*error*/) {
  auto& walk = *static_cast<XmlWalk*>(data);
  if (!walk.is_in_box() || walk.open.size() != 4) return;
  XmlBox& box = walk.boxes.back();
  auto* value = walk.open[3] == "label"  ? &box.label
                : walk.open[3] == "segs" ? &box.corners
                                         : nullptr;
  if (value != nullptr && !*value) value->emplace(text, size);
}

std::vector<XmlBox> boxes_of(const std::string& text, const std::string& file) {
  const GMarkupParser parser = {on_start, on_end, on_text, nullptr, nullptr};
  XmlWalk walk;
  const std::unique_ptr<GMarkupParseContext, void (*)(GMarkupParseContext*)> context(
      g_markup_parse_context_new(&parser, G_MARKUP_TREAT_CDATA_AS_TEXT, &walk, nullptr),
      g_markup_parse_context_free);
  GError* fault = nullptr;
  const bool is_read = g_markup_parse_context_parse(context.get(), text.data(),
                                                    static_cast<gssize>(text.size()), &fault) &&
                       g_markup_parse_context_end_parse(context.get(), &fault);
  if (is_read) return std::move(walk.boxes);
  const std::string why = fault->message;
  g_error_free(fault);
  throw_bad_label({file, 0}, "no XML: " + why);
}

}  // namespace

std::vector<LabelWord> parse_ctw1500_xml(const std::string& text, const std::string& file,
                                         LabelNotes& /*notes*/) {
  constexpr size_t kNumbers = 28;
  const LinePlace at{file, 0};
  std::vector<LabelWord> words;
  for (const auto& box : boxes_of(text, file)) {
    if (!box.corners) throw_bad_label(at, "a box without 'segs'");
    const auto numbers = split_text(*box.corners, ",");
    if (numbers.size() != kNumbers) {
      throw_bad_label(at,
                      fmt::format("'segs' of {} numbers, {} are needed", numbers.size(), kNumbers));
    }
    LabelWord& word = words.emplace_back();
    word.text = box.label.value_or("");
    for (size_t i = 0; i < kNumbers; i += 2) {
      word.points.push_back({static_cast<double>(whole_number(numbers[i], at)),
                             static_cast<double>(whole_number(numbers[i + 1], at))});
    }
    if (signed_area(word.points) < 0) std::reverse(word.points.begin(), word.points.end());
  }
  return words;
}

}  // namespace lockstep::ocr
