#pragma once
// JPEGs of kinds that OpenCV does not write, made by libjpeg: their bytes are the same each time.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
// It needs the headers above.
#include <jpeglib.h>

#include <opencv2/core.hpp>
#include <vector>

namespace lockstep::ocr {

/// Colours at 1/h of the columns and 1/v of the rows; the picture's channels are one (grey), three
/// (RGB) or four (inks: 255 is none, as Adobe has it).
struct JpegKind {
  int h = 1;
  int v = 1;
  bool progressive = false;
};

inline std::vector<uint8_t> jpeg_of_kind(const cv::Mat& picture, const JpegKind& kind,
                                         int quality = 80) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &out, &size);
  jpeg.image_width = static_cast<JDIMENSION>(picture.cols);
  jpeg.image_height = static_cast<JDIMENSION>(picture.rows);
  jpeg.input_components = picture.channels();
  jpeg.in_color_space = picture.channels() == 1   ? JCS_GRAYSCALE
                        : picture.channels() == 3 ? JCS_RGB
                                                  : JCS_CMYK;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, quality, TRUE);
  jpeg.comp_info[0].h_samp_factor = kind.h;
  jpeg.comp_info[0].v_samp_factor = kind.v;
  if (kind.progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  for (int y = 0; y < picture.rows; ++y) {
    JSAMPROW row = const_cast<uint8_t*>(picture.ptr(y));
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  std::vector<uint8_t> bytes(out, out + size);
  jpeg_destroy_compress(&jpeg);
  std::free(out);
  return bytes;
}

/// The four inks of a JPEG as it holds them.
inline cv::Mat inks_of_jpeg(const std::vector<uint8_t>& bytes) {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, bytes.data(), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = JCS_CMYK;
  jpeg_start_decompress(&jpeg);
  cv::Mat inks(static_cast<int>(jpeg.output_height), static_cast<int>(jpeg.output_width), CV_8UC4);
  for (int y = 0; y < inks.rows; ++y) {
    JSAMPROW row = inks.ptr(y);
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return inks;
}

}  // namespace lockstep::ocr
