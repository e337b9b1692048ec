#include "lockstep/ocr/transforms/decode.h"

#include <fmt/format.h>

#include <csetjmp>
#include <cstdio>
// It needs the header above, and the next needs it: its numbers depend on the library's build.
#include <jpeglib.h>
// Separate, so that clang-format does not sort it to the front.
#include <jerror.h>

#include <algorithm>
#include <array>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/reading_note.h"
#include "lockstep/error.h"
#include "lockstep/ocr/transforms/image_frame.h"

namespace lockstep::ocr {
namespace {

using Bytes = std::span<const uint8_t>;

int read_flags(const DecodeImage& options) {
  const int flags = options.img_mode == ImageMode::kGray ? cv::IMREAD_GRAYSCALE : cv::IMREAD_COLOR;
  return options.ignore_orientation ? flags | cv::IMREAD_IGNORE_ORIENTATION : flags;
}

cv::Mat decode_by_opencv(Bytes bytes, const DecodeImage& options) {
  const auto plain = is_png(bytes) ? plain_png(bytes) : std::vector<uint8_t>();
  if (!plain.empty()) bytes = plain;
  // OpenCV takes no const data, but only reads them.
  const cv::Mat view(1, static_cast<int>(bytes.size()), CV_8U, const_cast<uint8_t*>(bytes.data()));
  cv::Mat image;
  try {
    image = cv::imdecode(view, read_flags(options));
  } catch (const cv::Exception& error) {  // more pixels than OpenCV's own limit
    if (error.code == cv::Error::StsNoMem) throw;
    throw Error(ErrorCode::kCorrupt, "OpenCV: " + error.err);
  }
  if (image.empty()) throw Error(ErrorCode::kCorrupt, "no image, or a damaged one");
  if (options.img_mode == ImageMode::kRgb) cv::cvtColor(image, image, cv::COLOR_BGR2RGB);
  return image;
}

cv::Mat decode(Bytes bytes, const DecodeImage& options) {
  if (const auto fault = image_fault(bytes); !fault.empty()) {
    throw Error(ErrorCode::kCorrupt, fault);
  }
  std::optional<cv::Mat> image;
  if (is_jpeg(bytes)) image = decode_jpeg(bytes, options.img_mode, options.ignore_orientation);
  if (!image) image = decode_by_opencv(bytes, options);
  if (options.to_float32) image->convertTo(*image, CV_32F);
  return *image;
}

using Bytes = std::span<const uint8_t>;

/// libjpeg's state and error handler. It is C: an error jumps out of it.
struct Reader {
  jpeg_decompress_struct jpeg;
  jpeg_error_mgr errors;
  jmp_buf out;
  const uint8_t* begin;  ///< Of the data.
  std::array<char, JMSG_LENGTH_MAX> fault;
};

Reader& reader_of(j_common_ptr jpeg) {
  return *static_cast<Reader*>(jpeg->client_data);
}

void keep_message(Reader& reader) {
  if (reader.fault[0] != 0) return;
  reader.errors.format_message(reinterpret_cast<j_common_ptr>(&reader.jpeg), reader.fault.data());
}

[[noreturn]] void on_error(j_common_ptr jpeg) {
  Reader& reader = reader_of(jpeg);
  keep_message(reader);
  std::longjmp(reader.out, 1);
}

/// Whether bytes between the data and the next marker are padding; otherwise the data were decoded
/// wrong.
bool are_padding(const Reader& reader) {
  constexpr int kHarmless = 4;
  const int count = reader.errors.msg_parm.i[0];
  const uint8_t* end = reader.jpeg.src->next_input_byte;
  if (count <= kHarmless) return true;
  if (count > end - reader.begin) return false;
  return std::all_of(end - count, end, [](uint8_t byte) { return byte == 0; });
}

bool is_damage(const Reader& reader) {
  switch (reader.errors.msg_code) {
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_HIT_MARKER:
    case JWRN_MUST_RESYNC:
    case JWRN_JPEG_EOF:
      return true;
    case JWRN_EXTRANEOUS_DATA:
      return !are_padding(reader);
    default:  // odd headers, which do not affect the pixels
      return false;
  }
}

void on_message(j_common_ptr jpeg, int level) {
  if (level < 0 && is_damage(reader_of(jpeg))) keep_message(reader_of(jpeg));
}

// The next functions hold nothing with a destructor: errors jump over them.

bool read_header(Reader& reader, Bytes bytes) {
  if (setjmp(reader.out) != 0) return false;
  jpeg_create_decompress(&reader.jpeg);
  jpeg_mem_src(&reader.jpeg, bytes.data(), bytes.size());
  jpeg_read_header(&reader.jpeg, TRUE);
  return true;
}

/// Fixes the size of the result: output_width, output_height.
bool start(Reader& reader) {
  if (setjmp(reader.out) != 0) return false;
  jpeg_start_decompress(&reader.jpeg);
  return true;
}

/// Columns of the result; libjpeg moves them out to whole blocks.
struct JpegColumns {
  JDIMENSION first = 0;
  JDIMENSION count = 0;
};

bool choose_columns(Reader& reader, JpegColumns& columns) {
  if (setjmp(reader.out) != 0) return false;
  jpeg_crop_scanline(&reader.jpeg, &columns.first, &columns.count);
  return true;
}

/// Rows [first, end) of the result; the others are passed over. With `spare` the very last one is
/// read in any case: libjpeg does not look at rows that are passed over up to the end.
bool read_rows(Reader& reader, JDIMENSION first, JDIMENSION end, uint8_t* pixels, size_t step,
               uint8_t* spare) {
  if (setjmp(reader.out) != 0) return false;
  if (first > 0) jpeg_skip_scanlines(&reader.jpeg, first);
  while (reader.jpeg.output_scanline < end) {
    constexpr JDIMENSION kRows = 16;
    JSAMPROW rows[kRows];
    const JDIMENSION done = reader.jpeg.output_scanline;
    const JDIMENSION count = std::min(kRows, end - done);
    for (JDIMENSION i = 0; i < count; ++i) rows[i] = pixels + (done - first + i) * step;
    jpeg_read_scanlines(&reader.jpeg, rows, count);
  }
  const JDIMENSION rest = reader.jpeg.output_height - end;
  if (rest > 0 && spare == nullptr) {
    jpeg_abort_decompress(&reader.jpeg);
    return reader.fault[0] == 0;
  }
  if (rest > 1) jpeg_skip_scanlines(&reader.jpeg, rest - 1);
  if (rest > 0) jpeg_read_scanlines(&reader.jpeg, &spare, 1);
  jpeg_finish_decompress(&reader.jpeg);
  return reader.fault[0] == 0;
}

/// The pixels of `part` in a picture whose sides are divided.
cv::Rect divided(const PicturePart& part, cv::Size size) {
  const int d = part.denominator;
  const cv::Rect& all = part.part;
  const auto end_of = [&](int first, int count, int most) {
    return std::min(most, (first + count + d - 1) / d);
  };
  return {cv::Point(all.x / d, all.y / d),
          cv::Point(end_of(all.x, all.width, size.width), end_of(all.y, all.height, size.height))};
}

class JpegDecoder {
 public:
  explicit JpegDecoder(Bytes bytes) : bytes_(bytes) {
    reader_.jpeg.err = jpeg_std_error(&reader_.errors);
    reader_.errors.error_exit = on_error;
    reader_.errors.emit_message = on_message;
    reader_.begin = bytes.data();
    reader_.jpeg.client_data = &reader_;
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&reader_.jpeg); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  std::optional<cv::Mat> decode(ImageMode mode, const ChoosePart& choose) {
    if (!read_header(reader_, bytes_)) refuse();
    // libjpeg's own reading counts: a crafted file can show a smaller size to another reader.
    const auto pixels = int64_t{reader_.jpeg.image_width} * reader_.jpeg.image_height;
    if (pixels > kMaxImagePixels) {
      throw Error(ErrorCode::kCorrupt, fmt::format("the picture has {} x {} pixels, more than {}",
                                                   reader_.jpeg.image_width,
                                                   reader_.jpeg.image_height, kMaxImagePixels));
    }
    if (reader_.jpeg.num_components == 4) return std::nullopt;
    reader_.jpeg.out_color_space = mode == ImageMode::kGray  ? JCS_GRAYSCALE
                                   : mode == ImageMode::kRgb ? JCS_EXT_RGB
                                                             : JCS_EXT_BGR;
    const PicturePart wanted = choose(
        {static_cast<int>(reader_.jpeg.image_width), static_cast<int>(reader_.jpeg.image_height)});
    reader_.jpeg.scale_num = 1;
    reader_.jpeg.scale_denom = static_cast<unsigned>(wanted.denominator);
    if (!start(reader_)) refuse();
    return decode_started(mode, wanted);
  }

 private:
  cv::Mat decode_started(ImageMode mode, const PicturePart& wanted) {
    const cv::Size whole(static_cast<int>(reader_.jpeg.output_width),
                         static_cast<int>(reader_.jpeg.output_height));
    const cv::Rect part = divided(wanted, whole);
    JpegColumns columns{0, reader_.jpeg.output_width};
    if (part.width < whole.width) {
      // Colours at the border of a block depend on the next one.
      constexpr int kMargin = 2;
      const int left = std::max(0, part.x - kMargin);
      const int right = std::min(whole.width, part.x + part.width + kMargin);
      columns = {static_cast<JDIMENSION>(left), static_cast<JDIMENSION>(right - left)};
      if (!choose_columns(reader_, columns)) refuse();
    }
    cv::Mat image(part.height, static_cast<int>(reader_.jpeg.output_width),
                  mode == ImageMode::kGray ? CV_8UC1 : CV_8UC3);
    const auto first = static_cast<JDIMENSION>(part.y);
    const auto end = first + static_cast<JDIMENSION>(part.height);
    std::vector<uint8_t> spare(static_cast<size_t>(image.cols) * image.elemSize());
    uint8_t* const rest = wanted.checks_rest ? spare.data() : nullptr;
    if (!read_rows(reader_, first, end, image.data, image.step, rest)) refuse();
    if (part.width == image.cols) return image;
    return image.colRange(part.x - static_cast<int>(columns.first),
                          part.x - static_cast<int>(columns.first) + part.width);
  }

  [[noreturn]] void refuse() const {
    throw Error(ErrorCode::kCorrupt, std::string("a damaged JPEG (") + reader_.fault.data() + ")");
  }

  Bytes bytes_;
  Reader reader_{};
};

void set_upright(int orientation, cv::Mat& image) {
  if (orientation >= 5) cv::transpose(image, image);
  constexpr int kNone = 2;
  constexpr std::array<int, 9> kFlips = {kNone, kNone, 1, -1, 0, kNone, 1, -1, 0};
  const int flip = kFlips.at(static_cast<size_t>(orientation));
  if (flip != kNone) cv::flip(image, image, flip);
}

}  // namespace

void decode_image(const DecodeImage& options, Sample& sample) {
  if (sample.encoded.empty()) {
    const ReadingNote note(sample.source);
    const std::string bytes = read_file(sample.source, int64_t{1} << 30);
    sample.image = decode({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, options);
  } else {
    sample.image = decode(sample.encoded, options);
    sample.encoded = {};
  }
  sample.raw_size = sample.image.size();
  if (std::min(sample.image.rows, sample.image.cols) < sample.min_side) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("an image of {} x {} pixels; allowed: at least {} a side",
                            sample.image.cols, sample.image.rows, sample.min_side));
  }
  if (options.keep_ori) sample.original = sample.image.clone();
}

cv::Mat decode_part(Bytes bytes, const ChoosePart& choose) {
  if (const auto fault = image_fault(bytes); !fault.empty()) {
    throw Error(ErrorCode::kCorrupt, fault);
  }
  if (is_jpeg(bytes)) {
    if (auto image = JpegDecoder(bytes).decode(ImageMode::kRgb, choose)) return *image;
  }
  const cv::Mat whole =
      decode_by_opencv(bytes, {.img_mode = ImageMode::kRgb, .ignore_orientation = true});
  return whole(choose(whole.size()).part);
}

std::optional<cv::Mat> decode_jpeg(Bytes bytes, ImageMode mode, bool ignore_orientation) {
  const auto all = [](cv::Size size) { return PicturePart{{{0, 0}, size}}; };
  auto image = JpegDecoder(bytes).decode(mode, all);
  if (image && !ignore_orientation) set_upright(exif_orientation(bytes), *image);
  return image;
}

}  // namespace lockstep::ocr
