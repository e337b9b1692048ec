// Photographs of ICDAR 2015: the output equals MindOCR's (by SHA-256).
#include <gtest/gtest.h>

#include <cstdlib>

#include "lockstep/base/env.h"
#include "lockstep/checkpoint/file_digest.h"
#include "lockstep/ocr/convert/convert.h"
#include "tests/support/temp_folder.h"

namespace lockstep::ocr {
namespace {

std::string digest_of_part(const std::string& part) {
  const TempFolder dir;
  const std::string archive = env_or("LOCKSTEP_TEST_DATA", "") + "/ocr_det/" + part + ".zip";
  const std::string command =
      "/usr/bin/python3 -m zipfile -e " + archive + " " + dir.path().string();
  EXPECT_EQ(std::system(command.c_str()), 0);
  ConvertOptions options;
  options.image_dir = (dir / (part + "_images")).string();
  options.label_dir = (dir / (part + "_gts")).string();
  const ConvertResult result = convert_labels(options);
  EXPECT_TRUE(result.notes.empty());
  return digest_file(result.output).hex;
}

TEST(ConvertReal, Icdar2015IsByteForByteMindOcrs) {
  EXPECT_EQ(digest_of_part("test"),
            "d5e322b400b2bd56f77abc35733e8c8ed189a9e22bb1339dc417c0128998ce98");
  EXPECT_EQ(digest_of_part("train"),
            "f40aa2056b2fc327050a987a50ec15262ea538a6be07f8d0bf077ab29d96ada8");
}

}  // namespace
}  // namespace lockstep::ocr
