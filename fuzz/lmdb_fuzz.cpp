// LMDB environments: any bytes as data.mdb are passed over, or their records are read or refused.

#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "lockstep/error.h"
#include "lockstep/ocr/data/lmdb_dataset.h"

namespace {

using namespace lockstep;

/// Gone when the program ends.
struct Folder {
  std::string path = (std::filesystem::temp_directory_path() / "fuzz-lmdb-XXXXXX").string();
  Folder() {
    if (::mkdtemp(path.data()) == nullptr) std::abort();
    ::setenv("LOCKSTEP_LOG_LEVEL", "error", 1);
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

void use(const ocr::LmdbSets& sets) {
  const ocr::LmdbDataset data(sets);
  for (int64_t i = 0; i < std::min<int64_t>(data.size(), 50); ++i) {
    try {
      data.load(i);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kCorrupt) std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const Folder folder;
  std::ofstream(folder.path + "/data.mdb", std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  for (const bool filtered : {false, true}) {
    ocr::LmdbSets sets{.data_dirs = {folder.path}, .shuffle = filtered};
    sets.options = {.filter_max_len = filtered, .max_text_len = 3};
    try {
      use(sets);
    } catch (const Error& error) {  // nothing to read in it
      if (error.code() != ErrorCode::kInvalidArgument) std::abort();
    }
  }
  return 0;
}
