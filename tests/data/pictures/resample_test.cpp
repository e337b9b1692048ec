#include "lockstep/data/pictures/resample.h"

#include "tests/data/pictures/drawn.h"

namespace lockstep {
namespace {

// The expected bytes are those of Pillow 11.3 (13.0 gives the same for these sizes):
//   python3 -c '
//   from PIL import Image; import numpy as np
//   def show(w, h, to):
//       y, x, c = np.mgrid[0:h, 0:w, 0:3]
//       p = Image.fromarray(((x * 37 + y * 59 + c * 83 + x * y * 7) % 256).astype("uint8"))
//       print(list(np.asarray(p.resize(to, Image.BILINEAR)).ravel()))
//   show(5, 4, (2, 3)); show(5, 4, (7, 5)); show(64, 48, (5, 4)); show(3, 3, (3, 2))'

TEST(Resample, ShrinksAsPillow) {
  EXPECT_EQ(bytes_of(resample(drawn_picture(5, 4), {2, 3})),
            (std::vector<int>{57, 136, 162, 135, 162, 94, 130, 178, 87, 138, 99, 141, 163, 98, 117,
                              100, 158, 107}));
  EXPECT_EQ(bytes_of(resample(drawn_picture(64, 48), {5, 4})),
            (std::vector<int>{134, 131, 128, 129, 132, 132, 123, 126, 126, 126, 130, 124,
                              129, 129, 122, 128, 125, 127, 134, 131, 132, 136, 130, 126,
                              134, 130, 127, 132, 130, 127, 124, 127, 124, 132, 124, 129,
                              139, 116, 128, 129, 124, 129, 131, 124, 127, 129, 126, 125,
                              130, 125, 124, 127, 125, 129, 127, 125, 129, 128, 132, 131}));
}

TEST(Resample, GrowsAsPillow) {
  EXPECT_EQ(
      bytes_of(resample(drawn_picture(5, 4), {7, 5})),
      (std::vector<int>{0,   83,  166, 21,  104, 187, 48,  131, 214, 74,  157, 240, 100, 183, 84,
                        127, 210, 37,  148, 231, 58,  41,  124, 207, 65,  148, 129, 96,  179, 82,
                        125, 208, 112, 155, 110, 87,  185, 89,  95,  209, 113, 119, 89,  172, 127,
                        116, 199, 81,  150, 196, 60,  184, 139, 94,  126, 81,  127, 124, 79,  162,
                        151, 106, 189, 136, 142, 46,  166, 172, 76,  182, 159, 114, 165, 69,  152,
                        75,  106, 135, 62,  145, 151, 92,  175, 181, 177, 4,   87,  210, 37,  120,
                        178, 79,  162, 37,  120, 203, 78,  161, 62,  120, 203, 30,  153, 236, 63}));
}

TEST(Resample, LeavesAnAxisAloneThatKeepsItsSize) {
  EXPECT_EQ(bytes_of(resample(drawn_picture(3, 3), {3, 2})),
            (std::vector<int>{22, 105, 188, 62, 145, 132, 101, 184, 171, 96, 179, 102, 144, 227, 54,
                              193, 116, 103}));
  EXPECT_EQ(bytes_of(resample(drawn_picture(9, 4), {9, 4})), bytes_of(drawn_picture(9, 4)));
}

TEST(Resample, TakesAPartOfAPicture) {
  const cv::Mat whole = drawn_picture(20, 16);
  const cv::Rect part(3, 2, 9, 7);
  EXPECT_EQ(bytes_of(resample(whole(part), {4, 12})),
            bytes_of(resample(whole(part).clone(), {4, 12})));
}

TEST(Resample, WhiteStaysWhite) {
  const cv::Mat white(13, 17, CV_8UC3, cv::Scalar::all(255));
  EXPECT_EQ(bytes_of(resample(white, {40, 5})), std::vector<int>(40 * 5 * 3, 255));
}

// Pillow's, of the picture 11 x 8 above: p.resize((4, 3), Image.BILINEAR, box=(1.25, 0.5, 9.75,
// 7)).
TEST(Resample, APartMayBeginWithinAPixel) {
  EXPECT_EQ(bytes_of(resample(drawn_picture(11, 8), {4, 3}, {1.25, 0.5, 8.5, 6.5})),
            (std::vector<int>{124, 149, 110, 136, 117, 126, 115, 135, 135, 114, 136, 131,
                              128, 115, 118, 139, 132, 119, 115, 126, 127, 135, 111, 130,
                              124, 100, 122, 153, 142, 152, 138, 132, 131, 138, 114, 120}));
}

// Wide enough for whole registers, of which the last is not full; also a part of a larger matrix.
TEST(Resample, SizesOfAnyWidthAreTheSameAsTheirColumns) {
  const cv::Mat picture = drawn_picture(97, 61);
  const cv::Mat part = picture(cv::Rect(5, 7, 80, 51));
  for (const int width : {1, 5, 6, 16, 33, 79, 81, 200}) {
    const cv::Mat all = resample(part, {width, 23});
    EXPECT_EQ(bytes_of(all), bytes_of(resample(part.clone(), {width, 23}))) << width;
    // Rows and columns are independent: a one-column picture has no registers to fill.
    const cv::Mat rows = resample(part, {width, part.rows});
    for (int x = 0; x < width; x += 3) {
      EXPECT_EQ(bytes_of(resample(rows.col(x).clone(), {1, 23})), bytes_of(all.col(x).clone()))
          << width << " column " << x;
    }
  }
}

}  // namespace
}  // namespace lockstep
