#pragma once

#include <filesystem>

namespace lockstep {

/// Takes CIFAR-10's files (data_batch_*.bin, test_batch.bin, batches.meta.txt) out of a tar
/// archive, compressed or not, into the existing folder `dir`. Whatever path an entry has in the
/// archive, its last part alone names the file; other entries, links and folders are passed over.
/// Errors: kCorrupt naming the archive (damaged, cut short, or without any such file), kIo (disk
/// full); `dir` may then hold some of the files.
void unpack_cifar10(const std::filesystem::path& archive, const std::filesystem::path& dir);

}  // namespace lockstep
