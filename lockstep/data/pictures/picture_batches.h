#pragma once
// Labelled pictures as the tensors of a batch.

#include <memory>

#include "lockstep/batch.h"
#include "lockstep/data/pictures/reader.h"
#include "lockstep/data/pixel_form.h"
#include "lockstep/data/usable_samples.h"

namespace lockstep::inline internal {

/// Batches of `reader`'s pictures: images (N, channels, H, W) float32; the one target is the
/// labels, (N) int64.
///
/// An unusable picture costs a line in Batch::faults. With BadSample::kReplaced (training) another
/// one replaces it. With kLeftOut (evaluation) it is left out, and so is the padding behind the
/// samples that count: batches may be smaller, or empty.
///
/// This turns off OpenCV's own threads for the whole process, because pictures are made in
/// parallel. It also keeps freed memory from the system (keep_freed_memory()). Errors of a batch:
/// those of PictureReader::read(); kInvalidArgument naming two pictures of different sizes, if no
/// transform fixes the size.
///
/// With PixelForm::kBytes images are bytes, with Batch::byte_values. Errors: kInvalidArgument if
/// the pipeline has steps on floats.
std::unique_ptr<const BatchMaker> picture_batches(PictureReader reader, BadSample bad,
                                                  PixelForm form = PixelForm::kFloats);

}  // namespace lockstep::inline internal
