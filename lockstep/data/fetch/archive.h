#pragma once

#include <filesystem>

namespace lockstep::inline internal {

/// Extracts CIFAR-10's files (data_batch_*.bin, test_batch.bin, batches.meta.txt) from a tar
/// archive, compressed or not, into the existing folder `dir`. Only the last part of an entry's
/// path names the file; other entries, links and folders are ignored.
/// Errors: kCorrupt naming the archive (damaged, cut short, or without any such file), kIo (disk
/// full); `dir` may then hold some of the files.
void unpack_cifar10(const std::filesystem::path& archive, const std::filesystem::path& dir);

}  // namespace lockstep::inline internal
