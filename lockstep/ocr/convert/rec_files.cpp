#include <fmt/format.h>
#include <lmdb.h>

#include <utility>

#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/ocr/convert/label_set.h"
#include "lockstep/ocr/convert/lines.h"
#include "lockstep/ocr/convert/parse_set.h"

namespace lockstep::ocr {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::pair<std::string, std::string>>;

/// MLT's text field is itself "script,text".
std::pair<std::string, std::string> split_script(const std::string& text, const LinePlace& at) {
  const size_t comma = text.find(',');
  if (comma == std::string::npos) throw_bad_label(at, "no comma behind the script");
  return {std::string(trimmed(text.substr(0, comma))),
          std::string(trimmed(text.substr(comma + 1)))};
}

/// Label files of ICDAR 2015 use commas, MindOCR's own use tabs.
Words read_rec_words(const std::string& file) {
  const std::string text = read_file(file, kMaxLabelBytes);
  const auto lines = text_lines(text, file);
  if (lines.empty() || lines[0].find('\t') == std::string::npos)
    return parse_ic15_words(text, file);
  Words words;
  for (const std::string& line : lines) {
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) {
      throw_bad_label({file, static_cast<int64_t>(words.size()) + 1},
                      "no tab behind the picture's name");
    }
    words.emplace_back(line.substr(0, tab), line.substr(tab + 1));
  }
  return words;
}

void check(int code, const fs::path& folder) {
  if (code == MDB_SUCCESS) return;
  throw Error(ErrorCode::kIo, fmt::format("{}: LMDB: {}", folder.string(), mdb_strerror(code)));
}

/// An LMDB environment during its construction.
class LmdbWriter {
 public:
  LmdbWriter(fs::path folder, size_t most_bytes) : folder_(std::move(folder)) {
    make_folder(folder_);
    check(mdb_env_create(&env_), folder_);
    check(mdb_env_set_mapsize(env_, most_bytes), folder_);
    // Durability is not needed before the folder gets its name.
    check(mdb_env_open(env_, folder_.c_str(), MDB_NOSYNC | MDB_NOLOCK, 0666), folder_);
  }
  ~LmdbWriter() {
    if (transaction_ != nullptr) mdb_txn_abort(transaction_);
    mdb_env_close(env_);
  }
  LmdbWriter(const LmdbWriter&) = delete;
  LmdbWriter& operator=(const LmdbWriter&) = delete;

  void put(const std::string& key, const std::string& value) {
    if (transaction_ == nullptr) {
      check(mdb_txn_begin(env_, nullptr, 0, &transaction_), folder_);
      check(mdb_dbi_open(transaction_, nullptr, 0, &database_), folder_);
    }
    MDB_val name{key.size(), const_cast<char*>(key.data())};
    MDB_val bytes{value.size(), const_cast<char*>(value.data())};
    check(mdb_put(transaction_, database_, &name, &bytes, 0), folder_);
    if (++pending_ >= 2000) commit();
  }

  void finish() {
    commit();
    check(mdb_env_sync(env_, 1), folder_);
  }

 private:
  void commit() {
    pending_ = 0;
    if (transaction_ != nullptr)
      check(mdb_txn_commit(std::exchange(transaction_, nullptr)), folder_);
  }

  fs::path folder_;
  MDB_env* env_ = nullptr;
  MDB_txn* transaction_ = nullptr;
  MDB_dbi database_ = 0;
  int pending_ = 0;
};

/// Maximum size of the environment in bytes. Errors: kNotFound naming a missing picture.
size_t room_for(const ConvertOptions& options, const Words& words) {
  size_t bytes = size_t{64} << 20;
  for (const auto& [name, text] : words) {
    const fs::path picture = fs::path(options.image_dir) / name;
    std::error_code fault;
    const auto size = fs::file_size(picture, fault);
    if (fault) {
      throw Error(ErrorCode::kNotFound,
                  fmt::format("{}: no such picture, but {} has a label for it", picture.string(),
                              options.label_dir));
    }
    bytes += size + size / 4 + 2 * text.size() + 16384;  // whole pages, and the pages above them
  }
  return bytes & ~size_t{4095};
}

void fill_lmdb(const fs::path& folder, const ConvertOptions& options, const Words& words,
               const ConvertProgress& progress, ConvertResult& result) {
  LmdbWriter writer(folder, room_for(options, words));
  for (const auto& [name, text] : words) {
    const fs::path picture = fs::path(options.image_dir) / name;
    ++result.images;
    writer.put(fmt::format("image-{:09}", result.images), read_file(picture));
    writer.put(fmt::format("label-{:09}", result.images), text);
    if (progress) progress(result.images, static_cast<int64_t>(words.size()));
  }
  writer.put("num-samples", std::to_string(words.size()));
  writer.finish();
}

}  // namespace

bool has_rec_labels(const std::string& dataset_name) {
  return dataset_name == "ic15" || dataset_name == "mlt2017" || dataset_name == "mlt2019";
}

std::string rec_label_file(const ConvertOptions& options, ConvertResult& result) {
  std::string text;
  for (const auto& [name, word] :
       parse_ic15_words(read_file(options.label_dir, kMaxLabelBytes), options.label_dir)) {
    ++result.images;
    if (options.dataset_name == "ic15") {
      text += name + "\t" + word + "\n";
    } else {
      const auto [script, transcription] = split_script(word, {options.label_dir, result.images});
      text += name + "\t" + script + "\t" + transcription + "\n";
    }
  }
  return text;
}

void write_rec_lmdb(const ConvertOptions& options, const ConvertProgress& progress,
                    ConvertResult& result) {
  const fs::path output = absolute_folder(result.output, "--output_path");
  if (fs::exists(output)) {
    throw Error(ErrorCode::kInvalidArgument,
                result.output + " is there already; remove it or choose another --output_path");
  }
  const Words words = read_rec_words(options.label_dir);
  fill_folder(output, [&](const fs::path& folder) {
    fill_lmdb(folder, options, words, progress, result);
    std::error_code ignored;
    fs::remove(folder / "lock.mdb", ignored);
  });
}

}  // namespace lockstep::ocr
