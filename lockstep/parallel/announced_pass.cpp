#include "lockstep/parallel/announced_pass.h"

#include <map>

#include "lockstep/base/mutex.h"

namespace lockstep::inline internal {
namespace {

struct Counts {
  Mutex mutex;
  std::map<const c10::TensorImpl*, std::weak_ptr<std::atomic<int>>> by_parameter
      LOCKSTEP_GUARDED_BY(mutex);
};

Counts& counts() {
  static auto& all = *new Counts;  // never destroyed
  return all;
}

}  // namespace

AnnouncedPass::Count AnnouncedPass::count_of(const at::Tensor& parameter) {
  const c10::TensorImpl* const key = parameter.unsafeGetTensorImpl();
  Counts& all = counts();
  const MutexLock lock(all.mutex);
  auto& known = all.by_parameter[key];
  if (auto count = known.lock()) return count;
  const auto release = [key](const std::atomic<int>* count) {
    delete count;
    Counts& rest = counts();
    const MutexLock rest_lock(rest.mutex);
    const auto own = rest.by_parameter.find(key);
    // Unless another model has made a new count meanwhile.
    if (own != rest.by_parameter.end() && own->second.expired()) rest.by_parameter.erase(own);
  };
  Count count(new std::atomic<int>(0), release);
  known = count;
  return count;
}

AnnouncedPass::AnnouncedPass(const std::vector<NamedTensor>& parameters) {
  for (const NamedTensor& parameter : parameters) counts_.push_back(count_of(parameter.tensor));
}

void AnnouncedPass::set(bool announced) {
  if (announced == announced_) return;
  announced_ = announced;
  for (const Count& count : counts_) *count += announced ? 1 : -1;
}

}  // namespace lockstep::inline internal
