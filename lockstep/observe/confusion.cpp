#include "lockstep/observe/confusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "lockstep/base/file.h"
#include "lockstep/base/text.h"

namespace lockstep::inline internal {
namespace {

// All lengths in points.
constexpr double kPicture = 640;     // side of the square of all classes
constexpr double kLeastSquare = 13;  // so that a name fits beside it
constexpr double kMostSquare = 56;
constexpr double kCountedSquare = 30;  // that a count fits into
constexpr double kHead = 48;           // the title
constexpr double kEdge = 24;
constexpr double kLetter = 6.4;        // mean width at a size of 11
constexpr size_t kMostLetters = 24;    // of a name
constexpr int64_t kMostSquares = 200;  // a side: more would make a file of megabytes

/// Bytes of the UTF-8 character that begins there; 0: there is none.
size_t character_at(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const size_t length = lead < 0x80   ? 1
                        : lead < 0xc2 ? 0
                        : lead < 0xe0 ? 2
                        : lead < 0xf0 ? 3
                        : lead < 0xf5 ? 4
                                      : 0;
  if (at + length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[at + i]) & 0xc0) != 0x80) return 0;
  }
  return length;
}

/// A name of any bytes as XML's text, and how many letters it has.
struct ShownName {
  std::string text;
  size_t letters = 0;
};

ShownName shown_name(const std::string& name, size_t most_letters) {
  const std::string text = without_controls(name);
  ShownName shown;
  for (size_t at = 0; at < text.size() && shown.letters < most_letters; ++shown.letters) {
    const size_t length = character_at(text, at);
    shown.text += length == 0 ? "?" : xml_text(text.substr(at, length));
    at += std::max<size_t>(length, 1);
  }
  return shown;
}

/// Classes that share a square, added up.
Confusion in_squares(const Confusion& all) {
  if (all.classes <= kMostSquares) return all;
  Confusion fewer{kMostSquares, std::vector<int64_t>(kMostSquares * kMostSquares)};
  const auto square = [&](int64_t number) { return number * kMostSquares / all.classes; };
  for (int64_t truth = 0; truth < all.classes; ++truth) {
    for (int64_t predicted = 0; predicted < all.classes; ++predicted) {
      fewer.counts[static_cast<size_t>(square(truth) * kMostSquares + square(predicted))] +=
          all.at(truth, predicted);
    }
  }
  return fewer;
}

/// From white to the blue of the curves.
std::string shade(double share) {
  const auto mixed = [share](int blue) {
    return static_cast<int>(std::lround(255 + (blue - 255) * share));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mixed(0x00), mixed(0x72), mixed(0xb2));
}

/// Draws the squares; the top left corner of them all lies at (left, top).
class Squares {
 public:
  Squares(const Confusion& confusion, double side, double left, double top, std::string& out)
      : confusion_(confusion), side_(side), left_(left), top_(top), out_(out) {}

  void draw() {
    const double all = side_ * static_cast<double>(confusion_.classes);
    for (int64_t truth = 0; truth < confusion_.classes; ++truth) row(truth);
    out_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"none\" "
        "stroke=\"#888\"/>\n",
        left_, top_, all, all);
  }

  void names(const std::vector<ShownName>& names) {
    for (size_t i = 0; i < names.size(); ++i) {
      const double middle = (static_cast<double>(i) + 0.5) * side_;
      out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                          left_ - 6, top_ + middle + 4, names[i].text);
      out_ += fmt::format("<text transform=\"translate({:.1f} {:.1f}) rotate(-90)\">{}</text>\n",
                          left_ + middle + 4, top_ - 6, names[i].text);
    }
  }

 private:
  void row(int64_t truth) {
    int64_t samples = 0;
    for (int64_t i = 0; i < confusion_.classes; ++i) samples += confusion_.at(truth, i);
    for (int64_t i = 0; i < confusion_.classes; ++i) {
      const int64_t count = confusion_.at(truth, i);
      if (count > 0)
        square(truth, i, count, static_cast<double>(count) / static_cast<double>(samples));
    }
  }

  void square(int64_t truth, int64_t predicted, int64_t count, double share) {
    const double x = left_ + static_cast<double>(predicted) * side_;
    const double y = top_ + static_cast<double>(truth) * side_;
    out_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x, y,
        side_, side_, shade(share));
    if (side_ < kCountedSquare || count > 99999) return;
    out_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"{}\">{}</text>\n",
        x + side_ / 2, y + side_ / 2 + 4, share > 0.5 ? "#ffffff" : "#333333", count);
  }

  const Confusion& confusion_;
  double side_;
  double left_;
  double top_;
  std::string& out_;
};

}  // namespace

int64_t Confusion::samples() const {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

std::string confusion_csv(const Confusion& confusion, const std::vector<std::string>& names) {
  std::string table = "true class";
  for (const auto& name : names) table += "," + csv_cell(name);
  table += "\r\n";
  for (int64_t truth = 0; truth < confusion.classes; ++truth) {
    table += csv_cell(names.at(static_cast<size_t>(truth)));
    for (int64_t i = 0; i < confusion.classes; ++i) {
      table += fmt::format(",{}", confusion.at(truth, i));
    }
    table += "\r\n";
  }
  return table;
}

std::string confusion_svg(const std::string& title, const Confusion& confusion,
                          const std::vector<std::string>& names) {
  const Confusion shown = in_squares(confusion);
  const bool named = confusion.classes <= kMostNamedClasses;
  const auto classes = static_cast<double>(shown.classes);
  const double side =
      named ? std::clamp(kPicture / classes, kLeastSquare, kMostSquare) : kPicture / classes;
  std::vector<ShownName> shown_names;
  size_t letters = 0;
  for (const auto& name : names) {
    if (!named) break;
    shown_names.push_back(shown_name(name, kMostLetters));
    letters = std::max(letters, shown_names.back().letters);
  }
  const double left = kEdge + 18 + kLetter * static_cast<double>(letters);
  const double top = kHead + left;
  const double all = side * classes;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"Helvetica, Arial, sans-serif\" "
      "font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
      "<text x=\"{2:.0f}\" y=\"32\" font-size=\"17\" font-weight=\"700\">{3}</text>\n",
      left + all + kEdge, top + all + kEdge, kEdge, shown_name(title, title.size()).text);
  const auto axis = [&](const std::string& place, const char* words) {
    out += fmt::format("<text {} text-anchor=\"middle\" fill=\"#555\">{}</text>\n", place, words);
  };
  axis(fmt::format("x=\"{:.1f}\" y=\"{:.1f}\"", left + all / 2, kHead + 14), "predicted class");
  axis(fmt::format("transform=\"translate({:.1f} {:.1f}) rotate(-90)\"", kEdge - 4, top + all / 2),
       "true class");
  Squares squares(shown, side, left, top, out);
  squares.draw();
  squares.names(shown_names);
  return out + "</svg>\n";
}

void write_confusion(const std::filesystem::path& folder, const std::string& stem,
                     const std::string& title, const Confusion& confusion,
                     std::vector<std::string> names) {
  if (confusion.samples() == 0) return;
  names.resize(std::min(names.size(), static_cast<size_t>(confusion.classes)));
  while (std::ssize(names) < confusion.classes) names.push_back(std::to_string(names.size()));
  write_file_atomically(folder / (stem + ".csv"), confusion_csv(confusion, names));
  write_file_atomically(folder / (stem + ".svg"), confusion_svg(title, confusion, names));
}

}  // namespace lockstep::inline internal
