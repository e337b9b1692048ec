#pragma once
// Weights to start from, out of the network.

#include <string>

#include "lockstep/base/literals.h"
#include "lockstep/deadline.h"
#include "lockstep/train/config/config.h"

namespace lockstep {

/// The leading digits of the SHA-256 that a file's name ends with: "1e65cd21" of
/// "resnet18-1e65cd21.ckpt", as MindCV, torchvision and others name theirs; empty where there are
/// none. Eight decimal digits are taken for a date.
std::string digest_in_name(const std::string& file);

/// Downloads what model.pretrained and model.backbone.pretrained name by an address and is not here
/// (see weights_path()), into weights_folder(). A digest in its name must be its own. Processes
/// that call this at once take turns, and the later ones find it done; `deadline` bounds that wait
/// alone. Errors: kNotFound where it cannot be had, or a path is not there: the key, why, the place
/// for the file, and how to do without; kUnavailable, kCorrupt, kIo as download() says.
void fetch_pretrained(const ModelConfig& model, Deadline deadline = Deadline::after(3600s));

}  // namespace lockstep
