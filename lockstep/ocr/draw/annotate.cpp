#include "lockstep/ocr/draw/annotate.h"

#include <fontconfig/fontconfig.h>
#include <pango/pangocairo.h>

#include <algorithm>
#include <memory>
#include <opencv2/imgproc.hpp>

#include "lockstep/error.h"

namespace lockstep::ocr {
namespace {

// A C library's object, released by `Free`.
template <auto Free>
struct Release {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Surface = std::unique_ptr<cairo_surface_t, Release<cairo_surface_destroy>>;
using Painter = std::unique_ptr<cairo_t, Release<cairo_destroy>>;
using FontMap = std::unique_ptr<PangoFontMap, Release<g_object_unref>>;
using Fonts = std::unique_ptr<PangoContext, Release<g_object_unref>>;
using Layout = std::unique_ptr<PangoLayout, Release<g_object_unref>>;
using Font = std::unique_ptr<PangoFontDescription, Release<pango_font_description_free>>;

constexpr double kSmallestText = 10;  // pixels: smaller text is unreadable

cv::Mat with_four_channels(const cv::Mat& image) {
  cv::Mat copy;
  if (image.type() == CV_8UC3) {
    cv::cvtColor(image, copy, cv::COLOR_BGR2BGRA);
  } else if (image.type() == CV_8UC1) {
    cv::cvtColor(image, copy, cv::COLOR_GRAY2BGRA);
  } else {
    throw Error(ErrorCode::kInvalidArgument, "only 8-bit pictures can be drawn on");
  }
  return copy;
}

void outline(cairo_t* painter, const Polygon& polygon, double thickness) {
  for (const cv::Point2f& at : polygon) cairo_line_to(painter, at.x + 0.5, at.y + 0.5);
  cairo_close_path(painter);
  cairo_set_source_rgb(painter, 1, 0, 0);
  cairo_set_line_width(painter, thickness);
  cairo_stroke(painter);
}

Layout set_text(PangoContext* fonts, const std::string& family, const std::string& text,
                double pixels) {
  Layout layout(pango_layout_new(fonts));
  pango_layout_set_text(layout.get(), text.data(), static_cast<int>(text.size()));
  const Font font(pango_font_description_new());
  pango_font_description_set_family(font.get(), family.c_str());
  pango_font_description_set_absolute_size(font.get(), pixels * PANGO_SCALE);
  pango_layout_set_font_description(layout.get(), font.get());
  return layout;
}

cv::Size size_of(PangoLayout* layout) {
  cv::Size size;
  pango_layout_get_pixel_size(layout, &size.width, &size.height);
  return size;
}

// Above the corner nearest to the picture's upper left one, but inside the picture.
void write_text(cairo_t* painter, PangoContext* fonts, const std::string& family,
                const Annotation& one, double pixels, const cv::Size& picture) {
  const auto corner = *std::min_element(
      one.polygon.begin(), one.polygon.end(),
      [](const cv::Point2f& a, const cv::Point2f& b) { return a.x + a.y < b.x + b.y; });
  const double room = cv::norm(one.polygon[1] - one.polygon[0]);
  Layout layout = set_text(fonts, family, one.text, pixels);
  cv::Size size = size_of(layout.get());
  if (size.width > room) {
    layout = set_text(fonts, family, one.text, std::max(kSmallestText, pixels * room / size.width));
    size = size_of(layout.get());
  }
  const int x = std::clamp(static_cast<int>(corner.x), 0, std::max(0, picture.width - size.width));
  const int y = std::clamp(static_cast<int>(corner.y) - size.height - 1, 0,
                           std::max(0, picture.height - size.height));
  cairo_rectangle(painter, x, y, size.width, size.height);
  cairo_set_source_rgba(painter, 0, 0, 0, 0.6);
  cairo_fill(painter);
  cairo_move_to(painter, x, y);
  cairo_set_source_rgb(painter, 0, 1, 0);
  pango_cairo_show_layout(painter, layout.get());
}

void paint(cv::Mat& pixels, std::span<const Annotation> annotations, const std::string& family) {
  const Surface surface(cairo_image_surface_create_for_data(
      pixels.data, CAIRO_FORMAT_RGB24, pixels.cols, pixels.rows, static_cast<int>(pixels.step)));
  const Painter painter(cairo_create(surface.get()));
  const FontMap map(pango_cairo_font_map_new());  // not the thread's, which is never released
  const Fonts fonts(pango_font_map_create_context(map.get()));
  const double thickness = std::clamp(pixels.rows / 500.0, 1.0, 4.0);
  const double text = std::max(18 * pixels.rows / 700.0, 14.0);
  for (const Annotation& one : annotations) {
    if (one.polygon.size() >= 2) outline(painter.get(), one.polygon, thickness);
  }
  for (const Annotation& one : annotations) {
    if (one.polygon.size() >= 2 && !one.text.empty()) {
      write_text(painter.get(), fonts.get(), family, one, text, pixels.size());
    }
  }
  cairo_surface_flush(surface.get());
  if (cairo_status(painter.get()) != CAIRO_STATUS_SUCCESS) {
    throw Error(ErrorCode::kInternal, std::string("cannot draw on a picture: ") +
                                          cairo_status_to_string(cairo_status(painter.get())));
  }
}

}  // namespace

cv::Mat annotate(const cv::Mat& image, std::span<const Annotation> annotations,
                 const std::string& family) {
  if (image.empty()) throw Error(ErrorCode::kInvalidArgument, "an empty picture is not drawn on");
  cv::Mat pixels = with_four_channels(image);
  paint(pixels, annotations, family);
  cv::Mat result;
  cv::cvtColor(pixels, result, cv::COLOR_BGRA2BGR);
  return result;
}

std::string add_font(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) {
    throw Error(ErrorCode::kNotFound, "font " + file.string() + " does not exist");
  }
  const auto* path = reinterpret_cast<const FcChar8*>(file.c_str());
  int faces = 0;
  const std::unique_ptr<FcPattern, Release<FcPatternDestroy>> font(
      FcFreeTypeQuery(path, 0, nullptr, &faces));
  FcChar8* family = nullptr;
  if (!font || FcPatternGetString(font.get(), FC_FAMILY, 0, &family) != FcResultMatch ||
      FcConfigAppFontAddFile(nullptr, path) != FcTrue) {
    throw Error(ErrorCode::kCorrupt, file.string() + " is no font");
  }
  return reinterpret_cast<const char*>(family);
}

}  // namespace lockstep::ocr
