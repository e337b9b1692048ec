#pragma once
// Files that list pictures with their labels.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/data/pictures/index.h"

namespace lockstep::inline internal {

enum class ListFormat : uint8_t { kCsv, kTsv, kJsonLines };

/// By the extension: .csv, .tsv, .jsonl or .ndjson. Errors: kInvalidArgument.
ListFormat list_format(const std::filesystem::path& file);

struct ListLine {
  std::string picture;
  std::string label;  ///< A class's name or number.
};

/// Splits one line. CSV: two fields, of which each may be in double quotes (RFC 4180). TSV: two
/// fields around a tab. Blanks around a field are no part of it. JSON: an object with the keys
/// `path` and `label`, a text or a whole number; others are ignored. `where` ("FILE:LINE") begins
/// every error: kCorrupt.
ListLine split_list_line(std::string_view line, ListFormat format, const std::string& where);

struct ListOptions {
  std::filesystem::path folder;             ///< In front of relative paths.
  int64_t num_classes = 0;                  ///< Of the model: limit of labels that are numbers.
  std::optional<PictureClasses> classes{};  ///< Those of training, for evaluation.
  std::filesystem::path names{};            ///< See PictureIndex::limit_memory(); empty: no limit.
  bool looks = true;                        ///< For some of the pictures; false: names alone count.
};

/// The pictures of `file` in its order. Empty lines, and a heading in the first one (`path,label`;
/// also image, file or filename, and class) are left out. Another heading is an error where the
/// labels are numbers.
///
/// Labels of training: if all are whole numbers, they are the classes' numbers, below num_classes.
/// Otherwise they are names, and classes are numbered in the order of names. Labels of evaluation:
/// if all are names of `classes`, these; otherwise numbers of classes.
///
/// Lines that name a picture again with the same label stay, and are one warning with their number.
/// Names are compared without steps such as "./" and "a/../". Cost: 0.2 s for a million lines, and
/// 8 bytes for each meanwhile.
///
/// Memory: that of PictureIndex. Meanwhile the list's text is in memory, too.
///
/// Up to 100 pictures, spread evenly, are looked for, unless `looks` is false; missing ones are a
/// warning.
/// Errors: kNotFound (no such file); kInvalidArgument naming the line of a label that is no class;
/// kCorrupt (UTF-16, a line with a fault, a picture with two labels, no picture at all, none of
/// those looked for exists); kIo.
PictureIndex read_list(const std::filesystem::path& file, const ListOptions& options);

}  // namespace lockstep::inline internal
