#pragma once
// The label files of published data sets. Each function reads one file's text; `file` is its name
// in messages. What a set's own converter in MindOCR leaves out is left out, with a line in
// `notes`. Errors: kCorrupt "FILE:LINE: WHAT".

#include <map>
#include <string>
#include <vector>

#include "lockstep/ocr/convert/label_json.h"

namespace lockstep::ocr {

using LabelNotes = std::vector<std::string>;

/// ICDAR 2015: x1,y1,...,x4,y4,text. The text is all behind the 8th comma.
std::vector<LabelWord> parse_ic15(const std::string& text, const std::string& file,
                                  LabelNotes& notes);
/// MLT 2017 and 2019: x1,...,y4,script,text.
std::vector<LabelWord> parse_mlt(const std::string& text, const std::string& file,
                                 LabelNotes& notes);
/// RCTW-17: x1,...,y4,difficult,"text"; texts of what is difficult become ###.
std::vector<LabelWord> parse_rctw17(const std::string& text, const std::string& file,
                                    LabelNotes& notes);
/// MTWI 2018: as ICDAR 2015, with fractions.
std::vector<LabelWord> parse_mtwi2018(const std::string& text, const std::string& file,
                                      LabelNotes& notes);
/// MSRA-TD500: index difficult x y width height angle. Texts are not given: "0", or ###.
std::vector<LabelWord> parse_td500(const std::string& text, const std::string& file,
                                   LabelNotes& notes);
/// Total-Text: x: [[..]], y: [[..]], ornt: [u'c'], transcriptions: [u'the']; may be broken into
/// lines.
std::vector<LabelWord> parse_totaltext(const std::string& text, const std::string& file,
                                       LabelNotes& notes);
/// SCUT-CTW1500, test set: x1,y1,...,####text.
std::vector<LabelWord> parse_ctw1500(const std::string& text, const std::string& file,
                                     LabelNotes& notes);
/// ReCTS: JSON with the lines of one picture.
std::vector<LabelWord> parse_rects(const std::string& text, const std::string& file,
                                   LabelNotes& notes);

/// SynText-150k: one COCO file. By the picture's number, in the order in which they first appear.
struct SynTextImage {
  int64_t number = 0;
  std::vector<LabelWord> words;
};
std::vector<SynTextImage> parse_syntext150k(const std::string& text, const std::string& file);

/// Recognition labels of ICDAR 2015: name, "text". Pairs of name and text.
std::vector<std::pair<std::string, std::string>> parse_ic15_words(const std::string& text,
                                                                  const std::string& file);

}  // namespace lockstep::ocr
