#pragma once
// Writes LMDB environments with liblmdb.

#include <gtest/gtest.h>
#include <lmdb.h>

#include <filesystem>
#include <map>
#include <string>

namespace lockstep::testing {

inline void lmdb_check(int status) {
  ASSERT_EQ(status, 0) << mdb_strerror(status);
}

/// Writes `values` to DIR/data.mdb, in one transaction; creates the folder.
inline void write_lmdb(const std::filesystem::path& dir,
                       const std::map<std::string, std::string>& values) {
  std::filesystem::create_directories(dir);
  MDB_env* environment = nullptr;
  lmdb_check(mdb_env_create(&environment));
  lmdb_check(mdb_env_set_mapsize(environment, size_t{64} << 20));
  lmdb_check(mdb_env_open(environment, dir.c_str(), MDB_NOSYNC, 0644));
  MDB_txn* transaction = nullptr;
  lmdb_check(mdb_txn_begin(environment, nullptr, 0, &transaction));
  MDB_dbi database = 0;
  lmdb_check(mdb_dbi_open(transaction, nullptr, 0, &database));
  for (const auto& [key, value] : values) {
    MDB_val k{key.size(), const_cast<char*>(key.data())};
    MDB_val v{value.size(), const_cast<char*>(value.data())};
    lmdb_check(mdb_put(transaction, database, &k, &v, 0));
  }
  lmdb_check(mdb_txn_commit(transaction));
  mdb_env_close(environment);
}

/// MindOCR's keys for words: (image bytes, text).
inline std::map<std::string, std::string> word_records(
    const std::vector<std::pair<std::string, std::string>>& words) {
  std::map<std::string, std::string> values{{"num-samples", std::to_string(words.size())}};
  for (size_t i = 0; i < words.size(); ++i) {
    std::string number = std::to_string(i + 1);
    number.insert(0, 9 - number.size(), '0');
    values["image-" + number] = words[i].first;
    values["label-" + number] = words[i].second;
  }
  return values;
}

}  // namespace lockstep::testing
