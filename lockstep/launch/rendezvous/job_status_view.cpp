#include "lockstep/launch/rendezvous/job_status_view.h"

#include "lockstep/launch/rendezvous/keys.h"
#include "lockstep/launch/rendezvous/leader.h"

namespace lockstep::inline internal {

void JobStatusView::take(const std::vector<KeyValueStore::Change>& changes) {
  for (const auto& change : changes) take_one(change);
}

void JobStatusView::take_one(const KeyValueStore::Change& change) {
  const auto& [key, value] = change;
  if (key == keys::kLeader) {
    term_ = value.value_or("");
    trust();
  } else if (key == keys::kRecord) {
    record_.reset();
    if (value) record_ = job_record_from_json(*value);
    trust();
  } else if (key == keys::refused(id_)) {
    refused_.reset();
    if (value) refused_.emplace(refusal_from_json(*value));
  } else if (key == keys::kMoved) {
    moved_.reset();
    if (value) moved_ = parse_endpoint(*value, 0);
  }
}

/// A leader goes after it has written the end. Both changes may come at once, in the order of the
/// keys.
void JobStatusView::trust() {
  const bool ended = trusted_ && trusted_->state == JobRecord::State::kEnded;
  if (term_.empty() && ended) return;
  trusted_.reset();
  if (record_ && !term_.empty() && record_->by == term_) trusted_ = record_;
}

}  // namespace lockstep::inline internal
