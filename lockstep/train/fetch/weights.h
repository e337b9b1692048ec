#pragma once
// Downloads initial weights.

#include <string>

#include "lockstep/base/literals.h"
#include "lockstep/deadline.h"
#include "lockstep/train/config/config.h"

namespace lockstep::inline internal {

/// The leading digits of the SHA-256 at the end of a file's name: "1e65cd21" of
/// "resnet18-1e65cd21.ckpt", the convention of MindCV, torchvision and others. Empty if there are
/// none. Eight decimal digits are taken for a date.
std::string digest_in_name(const std::string& file);

/// Downloads the files that model.pretrained, model.backbone.pretrained and a loss's
/// teacher.pretrained name by an address and that are missing (see weights_path()), into
/// weights_folder(). A digest in the name must match
/// the file. Processes that call this at once take turns, and the later ones find the file present;
/// `deadline` bounds that wait alone. Errors: kNotFound if a download fails or a path is missing.
/// It has the key, the reason, the place for the file, and how to do without. Also kUnavailable,
/// kCorrupt, kIo as in download().
void fetch_pretrained(const Config& config, Deadline deadline = Deadline::after(3600s));

}  // namespace lockstep::inline internal
