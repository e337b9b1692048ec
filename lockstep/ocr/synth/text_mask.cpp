#include "lockstep/ocr/synth/text_mask.h"

#include <fmt/format.h>
#include <ft2build.h>
#include FT_FREETYPE_H

#include <algorithm>
#include <climits>
#include <cmath>

#include "lockstep/error.h"

namespace lockstep::ocr {
namespace {

constexpr int kRim = 2;
constexpr FT_Int32 kLoad = FT_LOAD_NO_HINTING | FT_LOAD_NO_BITMAP;

struct Glyph {
  cv::Mat alpha;
  int left = 0;  // of the pen's origin
  int top = 0;   // rows above the base line
};

cv::Mat copy_bitmap(const FT_Bitmap& bitmap) {
  const auto rows = static_cast<int>(bitmap.rows);
  const auto columns = static_cast<int>(bitmap.width);
  if (rows == 0 || columns == 0) return {};
  return cv::Mat(rows, columns, CV_8U, bitmap.buffer, static_cast<size_t>(bitmap.pitch)).clone();
}

/// All glyphs on one canvas of the smallest size.
TextMask join(const std::vector<Glyph>& glyphs, const std::string& text) {
  int left = INT_MAX, right = INT_MIN, top = INT_MIN, bottom = INT_MAX;
  for (const Glyph& glyph : glyphs) {
    if (glyph.alpha.empty()) continue;
    left = std::min(left, glyph.left);
    right = std::max(right, glyph.left + glyph.alpha.cols);
    top = std::max(top, glyph.top);
    bottom = std::min(bottom, glyph.top - glyph.alpha.rows);
  }
  if (left > right) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("text '{}' has no ink", text));
  }
  TextMask mask;
  mask.box = cv::Rect2d(kRim, kRim, right - left, top - bottom);
  mask.base_line = top + kRim;
  mask.alpha = cv::Mat::zeros(top - bottom + 2 * kRim, right - left + 2 * kRim, CV_8U);
  for (const Glyph& glyph : glyphs) {
    if (glyph.alpha.empty()) continue;
    const cv::Rect at(glyph.left - left + kRim, top - glyph.top + kRim, glyph.alpha.cols,
                      glyph.alpha.rows);
    cv::Mat target = mask.alpha(at);
    cv::max(target, glyph.alpha, target);
  }
  return mask;
}

}  // namespace

struct TextPen::State {
  explicit State(std::vector<FontFile> files) : fonts(std::move(files)), faces(fonts.size()) {
    if (FT_Init_FreeType(&library) != 0) throw Error(ErrorCode::kInternal, "FreeType: no start");
  }
  ~State() { FT_Done_FreeType(library); }  // also frees all faces
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  FT_Face face(size_t font) {
    FT_Face& open = faces.at(font);
    const FontFile& file = fonts[font];
    if (open == nullptr && FT_New_Face(library, file.path.c_str(), file.face, &open) != 0) {
      open = nullptr;
      throw Error(ErrorCode::kIo, file.path + ": FreeType cannot read this font");
    }
    return open;
  }

  std::vector<FontFile> fonts;
  std::vector<FT_Face> faces;
  FT_Library library = nullptr;
};

TextPen::TextPen(std::vector<FontFile> fonts) : state_(std::make_unique<State>(std::move(fonts))) {}
TextPen::~TextPen() = default;

size_t TextPen::fonts() const {
  return state_->fonts.size();
}

TextMask TextPen::draw(const std::string& text, size_t font, double pixels, double spacing) {
  FT_Face const face = state_->face(font);
  FT_Set_Char_Size(face, 0, static_cast<FT_F26Dot6>(std::lround(pixels * 64)), 72, 72);
  std::vector<Glyph> glyphs;
  FT_Vector pen{0, 0};  // in 64ths of a pixel
  FT_UInt before = 0;
  for (const char letter : text) {
    const FT_UInt index = FT_Get_Char_Index(face, static_cast<FT_ULong>(letter));
    FT_Vector kerning{0, 0};
    if (before != 0) FT_Get_Kerning(face, before, index, FT_KERNING_UNFITTED, &kerning);
    pen.x += kerning.x;
    FT_Vector part{pen.x & 63, 0};
    FT_Set_Transform(face, nullptr, &part);
    if (FT_Load_Glyph(face, index, kLoad | FT_LOAD_RENDER) != 0) continue;
    const FT_GlyphSlot slot = face->glyph;
    glyphs.push_back({copy_bitmap(slot->bitmap), static_cast<int>(pen.x >> 6) + slot->bitmap_left,
                      slot->bitmap_top});
    pen.x += slot->linearHoriAdvance >> 10;  // 16.16 pixels, not rounded to whole ones
    pen.x += std::lround(spacing * pixels * 64);
    before = index;
  }
  return join(glyphs, text);
}

}  // namespace lockstep::ocr
