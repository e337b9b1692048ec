#include "lockstep/ocr/synth/fonts.h"

#include <fmt/format.h>
#include <fontconfig/fontconfig.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <tuple>

#include "lockstep/error.h"

namespace lockstep::ocr {
namespace {

using ConfigPtr = std::unique_ptr<FcConfig, decltype(&FcConfigDestroy)>;
using FontSetPtr = std::unique_ptr<FcFontSet, decltype(&FcFontSetDestroy)>;

ConfigPtr configuration(const std::filesystem::path& folder) {
  if (folder.empty()) return {FcInitLoadConfigAndFonts(), FcConfigDestroy};
  if (!std::filesystem::is_directory(folder)) {
    throw Error(ErrorCode::kInvalidArgument, folder.string() + " is no folder of fonts");
  }
  ConfigPtr config(FcConfigCreate(), FcConfigDestroy);
  FcConfigAppFontAddDir(config.get(), reinterpret_cast<const FcChar8*>(folder.c_str()));
  return config;
}

FontSetPtr list(FcConfig* config) {
  FcPattern* const all = FcPatternBuild(nullptr, FC_SCALABLE, FcTypeBool, FcTrue, nullptr);
  FcObjectSet* const fields =
      FcObjectSetBuild(FC_FILE, FC_INDEX, FC_WEIGHT, FC_CHARSET, FC_FAMILY, nullptr);
  FontSetPtr fonts(FcFontList(config, all, fields), FcFontSetDestroy);
  FcObjectSetDestroy(fields);
  FcPatternDestroy(all);
  return fonts;
}

bool covers_text(FcPattern* font) {
  FcCharSet* letters = nullptr;
  if (FcPatternGetCharSet(font, FC_CHARSET, 0, &letters) != FcResultMatch) return false;
  for (const char* range : {"09", "AZ", "az"}) {
    for (char letter = range[0]; letter <= range[1]; ++letter) {
      if (!FcCharSetHasChar(letters, static_cast<FcChar32>(letter))) return false;
    }
  }
  return true;
}

/// Thin strokes vanish in small text; mathematical and symbol fonts look unlike text.
bool reads_well(FcPattern* font) {
  int weight = FC_WEIGHT_REGULAR;
  FcPatternGetInteger(font, FC_WEIGHT, 0, &weight);
  FcChar8* family = nullptr;
  FcPatternGetString(font, FC_FAMILY, 0, &family);
  const std::string_view name(family != nullptr ? reinterpret_cast<const char*>(family) : "");
  return weight >= FC_WEIGHT_BOOK && name.find("Math") == std::string_view::npos &&
         name.find("Symbol") == std::string_view::npos;
}

}  // namespace

std::vector<FontFile> find_fonts(const std::filesystem::path& folder) {
  const ConfigPtr config = configuration(folder);
  const FontSetPtr fonts = list(config.get());
  std::vector<FontFile> found;
  for (int i = 0; fonts && i < fonts->nfont; ++i) {
    FcPattern* const font = fonts->fonts[i];
    FcChar8* path = nullptr;
    int face = 0;
    if (FcPatternGetString(font, FC_FILE, 0, &path) != FcResultMatch) continue;
    FcPatternGetInteger(font, FC_INDEX, 0, &face);
    // The upper half of the index selects an instance of a variable font: only its default is used.
    if (face >> 16 != 0 || !covers_text(font) || !reads_well(font)) continue;
    found.push_back({reinterpret_cast<const char*>(path), face});
  }
  std::sort(found.begin(), found.end(), [](const FontFile& a, const FontFile& b) {
    return std::tie(a.path, a.face) < std::tie(b.path, b.face);
  });
  if (found.empty()) {
    throw Error(ErrorCode::kNotFound,
                fmt::format("no font with ASCII letters and digits {}; install one, such as "
                            "Debian's fonts-dejavu-core",
                            folder.empty() ? "on this system" : "in " + folder.string()));
  }
  return found;
}

}  // namespace lockstep::ocr
