#pragma once
// The characters of a recogniser, and their class numbers.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lockstep/ocr/options.h"

namespace lockstep::ocr {

/// Classes 0 .. num_classes()-1: the characters in the file's order, then a space if use_space_char
/// is set and the file has none. CTC's blank is last, or, without blank_at_last, first, which
/// shifts all others by one. Read-only after construction.
///
/// A file has one character a line, in UTF-8. Only CR and LF are cut off, so that a line may hold
/// U+3000 or a plain space. Without a file: 0-9 and a-z, and lower() is always true.
class Dictionary {
 public:
  /// Reads the file named in `options`. Errors: kNotFound, kIo, and those of parse().
  explicit Dictionary(const CharacterOptions& options);

  /// The same for a file's bytes; `file` names it in errors.
  /// Errors: kCorrupt naming file and line (not UTF-8; a duplicate entry; empty file).
  static Dictionary parse(std::string_view bytes, const std::string& file,
                          const CharacterOptions& options);

  int32_t num_classes() const { return static_cast<int32_t>(entries_.size()); }
  int32_t blank() const { return blank_; }
  bool lower() const { return lower_; }

  /// Class of a character, or -1. Cost: one hash.
  int32_t find(std::string_view character) const;
  bool contains(std::string_view character) const { return find(character) >= 0; }

  /// The character of a class in [0, num_classes()); empty for the blank.
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

// A label's text as class numbers for CTC.

struct EncodedText {
  std::vector<int32_t> text_seq;  ///< max_text_len entries, the rest blank.
  int32_t length = 0;             ///< Used leading entries.
  std::string remark;             ///< The losses of the encoding, for a message; empty: none.
};

/// Encodes `text` like MindOCR's RecCTCLabelEncode. An empty text, and one of more than
/// `max_text_len` characters, becomes all blank. Other texts are converted to lower case if the
/// dictionary is, and lose the characters that it lacks, possibly all. Errors: kCorrupt (not
/// UTF-8).
EncodedText encode_text(const Dictionary& dictionary, std::string_view text, int max_text_len);

/// Length of a label for CTC: two equal neighbours need a blank in between, so they count one more.
int64_t ctc_length(std::string_view text);

}  // namespace lockstep::ocr
