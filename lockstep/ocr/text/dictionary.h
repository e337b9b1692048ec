#pragma once
// Characters that a recogniser knows, and their class numbers.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lockstep/ocr/text/options.h"

namespace lockstep::ocr {

/// Classes 0 .. num_classes()-1: the characters in the file's order, a space after them where
/// use_space_char asks for one that the file lacks, and CTC's blank last, or, without
/// blank_at_last, first, which moves all others up by one. Read-only once made.
///
/// A file has one character a line, in UTF-8; only CR and LF are cut off, so that a line may hold
/// U+3000 or a plain space. Without a file: 0-9 and a-z, and lower() is true whatever was asked.
class Dictionary {
 public:
  /// Reads the file named in `options`. Errors: kNotFound, kIo, and those of parse().
  explicit Dictionary(const CharacterOptions& options);

  /// The same of a file's bytes; `file` names it in errors.
  /// Errors: kCorrupt naming file and line (not UTF-8; an entry that stands there twice; empty
  /// file).
  static Dictionary parse(std::string_view bytes, const std::string& file,
                          const CharacterOptions& options);

  int32_t num_classes() const { return static_cast<int32_t>(entries_.size()); }
  int32_t blank() const { return blank_; }
  bool lower() const { return lower_; }

  /// Class of a character, or -1. Cost: one hash.
  int32_t find(std::string_view character) const;
  bool contains(std::string_view character) const { return find(character) >= 0; }

  /// The character of a class in [0, num_classes()); that of the blank is empty.
  const std::string& character(int32_t index) const {
    return entries_.at(static_cast<size_t>(index));
  }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  Dictionary(std::vector<std::string> characters, const CharacterOptions& options);

  std::vector<std::string> entries_;
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> classes_;
  int32_t blank_ = 0;
  bool lower_ = false;
};

// A label's text as the class numbers that CTC trains on.

struct EncodedText {
  std::vector<int32_t> text_seq;  ///< max_text_len entries, the rest blank.
  int32_t length = 0;             ///< Leading entries that count.
  std::string remark;             ///< What was lost on the way, for a message; empty: nothing.
};

/// Encodes `text` as MindOCR's RecCTCLabelEncode does: an empty text, and one of more than
/// `max_text_len` characters, becomes all blank; the rest is brought to lower case where the
/// dictionary says so, and characters that it lacks are dropped, which may leave none.
/// Errors: kCorrupt (not UTF-8).
EncodedText encode_text(const Dictionary& dictionary, std::string_view text, int max_text_len);

/// Length of a label for CTC: an equal neighbour needs a blank between, so it counts as one more.
int64_t ctc_length(std::string_view text);

}  // namespace lockstep::ocr
