#pragma once
// The label files of published data sets. Each function parses one file's text; `file` is its name
// in messages. It skips the same entries as MindOCR's converter of that set, with a line in
// `notes`. Errors: kCorrupt "FILE:LINE: WHAT".

#include <map>
#include <string>
#include <vector>

#include "lockstep/ocr/convert/label_json.h"

namespace lockstep::ocr {

using LabelNotes = std::vector<std::string>;

/// ICDAR 2015: x1,y1,...,x4,y4,text. The text is everything behind the 8th comma.
std::vector<LabelWord> parse_ic15(const std::string& text, const std::string& file,
                                  LabelNotes& notes);
/// MLT 2017 and 2019: x1,...,y4,script,text.
std::vector<LabelWord> parse_mlt(const std::string& text, const std::string& file,
                                 LabelNotes& notes);
/// RCTW-17: x1,...,y4,difficult,"text"; texts of difficult entries become ###.
std::vector<LabelWord> parse_rctw17(const std::string& text, const std::string& file,
                                    LabelNotes& notes);
/// MTWI 2018: as ICDAR 2015, with fractions.
std::vector<LabelWord> parse_mtwi2018(const std::string& text, const std::string& file,
                                      LabelNotes& notes);
/// MSRA-TD500: index difficult x y width height angle. It has no texts: "0", or ###.
std::vector<LabelWord> parse_td500(const std::string& text, const std::string& file,
                                   LabelNotes& notes);
/// Total-Text: x: [[..]], y: [[..]], ornt: [u'c'], transcriptions: [u'the']; line breaks are
/// allowed.
std::vector<LabelWord> parse_totaltext(const std::string& text, const std::string& file,
                                       LabelNotes& notes);
/// SCUT-CTW1500, test set: x1,y1,...,####text.
std::vector<LabelWord> parse_ctw1500(const std::string& text, const std::string& file,
                                     LabelNotes& notes);
/// The same, training set: XML, <image><box><label>, <segs> of 14 corners.
std::vector<LabelWord> parse_ctw1500_xml(const std::string& text, const std::string& file,
                                         LabelNotes& notes);
/// ReCTS: JSON with the lines of one picture.
std::vector<LabelWord> parse_rects(const std::string& text, const std::string& file,
                                   LabelNotes& notes);

/// CASIA-10K: as ICDAR 2015, but in GBK; invalid bytes are skipped.
std::vector<LabelWord> parse_casia10k(const std::string& text, const std::string& file,
                                      LabelNotes& notes);
/// SROIE: as ICDAR 2015, but in GBK and with unchanged corners; *** becomes ###.
std::vector<LabelWord> parse_sroie(const std::string& text, const std::string& file,
                                   LabelNotes& notes);
/// Born-Digital Images: left, top, right, bottom, "text".
std::vector<LabelWord> parse_borndigital(const std::string& text, const std::string& file,
                                         LabelNotes& notes);

/// LSVT and, with a language, ArT (ICDAR 2019): one JSON file, {picture without ending: [texts]}. A
/// self-crossing polygon becomes its convex hull, even if that has two corners.
std::map<std::string, std::vector<LabelWord>> parse_art(const std::string& text,
                                                        const std::string& file, bool has_language,
                                                        LabelNotes& notes);

struct LabelledPicture {
  std::string name;
  std::vector<LabelWord> words;
};
/// CTW (Chinese text in the wild): a line of JSON per picture. Its sentences are lists of
/// characters, which become their convex hull.
std::vector<LabelledPicture> parse_ctw(const std::string& text, const std::string& file,
                                       LabelNotes& notes);
/// TextOCR: COCO's tables; "." becomes ###, and a self-crossing polygon becomes a sorted quad or
/// its box.
std::vector<LabelledPicture> parse_textocr(const std::string& text, const std::string& file,
                                           LabelNotes& notes);
/// COCO-Text: the pictures of one `split` with legible text.
std::vector<LabelledPicture> parse_cocotext(const std::string& text, const std::string& file,
                                            const std::string& split, LabelNotes& notes);

/// SynText-150k: one COCO file. Grouped by the picture's number, in the order of first appearance.
struct SynTextImage {
  int64_t number = 0;
  std::vector<LabelWord> words;
};
std::vector<SynTextImage> parse_syntext150k(const std::string& text, const std::string& file);

/// Recognition labels of ICDAR 2015: name, "text". Pairs of name and text.
std::vector<std::pair<std::string, std::string>> parse_ic15_words(const std::string& text,
                                                                  const std::string& file);

}  // namespace lockstep::ocr
