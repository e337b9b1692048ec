#include "lockstep/parallel/gradient_memory.h"

#include <ATen/TensorUtils.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "lockstep/collectives.h"
#include "lockstep/comm/kernels/reduce.h"
#include "lockstep/tensor/device/dtype.h"
#include "lockstep/tensor/device/staging.h"

namespace lockstep::inline internal {
namespace {

GradientSpec spec_of(const NamedTensor& parameter) {
  const at::Tensor& tensor = parameter.tensor;
  const DType dtype = to_dtype(tensor.scalar_type());
  return {tensor.numel(), size_of(dtype), static_cast<int>(dtype)};
}

bool all_on(c10::Device device, const std::vector<NamedTensor>& parameters) {
  return std::all_of(parameters.begin(), parameters.end(),
                     [&](const NamedTensor& each) { return each.tensor.device() == device; });
}

/// Whether buckets lie where all the parameters are: on the group's device, or on another one that
/// is not the CPU.
bool reduces_there(const ProcessGroup& group, const std::vector<NamedTensor>& parameters) {
  if (parameters.empty()) return false;
  const c10::Device device = parameters.front().tensor.device();
  return all_on(device, parameters) && (!device.is_cpu() || device_of(group) == device);
}

/// The layout that autograd gives gradients: the parameter's own if it is dense. Empty stands for
/// row-major.
at::IntArrayRef gradient_strides(const at::Tensor& parameter) {
  return parameter.is_non_overlapping_and_dense() ? parameter.strides() : at::IntArrayRef();
}

bool has_gradient_layout(const at::Tensor& grad, const at::Tensor& parameter) {
  const auto strides = gradient_strides(parameter);
  return strides.empty() ? grad.is_contiguous() : grad.strides() == strides;
}

/// True if only `grad`, and the engine's `arrived` from which it was taken, hold its memory.
/// Another holder is a gradient that backward still needs unchanged, as when a parameter enters the
/// graph through view + add. A view (of a transposed product, for example) has its base as a third
/// holder, which is harmless if no other holds the base.
bool has_memory_alone(const at::Tensor& grad, const at::Tensor& arrived) {
  const auto holders = grad.storage().use_count();
  const bool taken_over = arrived.defined() && arrived.is_alias_of(grad);
  if (!taken_over) return holders == 1;
  return holders == 2 || (holders == 3 && arrived.is_view() && arrived._base().use_count() == 1);
}

/// True if only the engine holds the tensor that it gave to the hook, and .grad is not in it.
bool is_left_over(const at::Tensor& arrived, const at::Tensor& grad) {
  if (!arrived.defined() || arrived.is_alias_of(grad) || arrived.use_count() != 1) return false;
  const auto holders = arrived.storage().use_count();
  return holders == 1 || (holders == 2 && arrived.is_view() && arrived._base().use_count() == 1);
}

/// Lets an arena serve the thread first, and on destruction serves the thread as before.
class ServesFirst {
 public:
  ServesFirst(std::shared_ptr<TensorArena> arena, bool stays)
      : arena_(std::move(arena)), stays_(stays) {
    TensorArena::serve_this_thread(arena_);
  }
  ~ServesFirst() {
    if (!stays_) TensorArena::stop_serving_this_thread(arena_);
  }
  ServesFirst(const ServesFirst&) = delete;
  ServesFirst& operator=(const ServesFirst&) = delete;

 private:
  std::shared_ptr<TensorArena> arena_;
  bool stays_;
};

}  // namespace

GradientMemory::GradientMemory(ProcessGroup group, const std::vector<NamedTensor>& parameters)
    : group_(std::move(group)),
      on_device_(reduces_there(group_, parameters)),
      placed_bytes_(all_on(at::kCPU, parameters) && !on_device_
                        ? TensorArena::kMinBytes
                        : std::numeric_limits<int64_t>::max()),
      reduced_(parameters.size()),
      homes_(parameters.size()),
      backups_(parameters.size()),
      preset_(parameters.size()),
      made_(parameters.size(), WeakTensor(at::Tensor().getIntrusivePtr())) {
  std::vector<int64_t> block_bytes;
  for (const NamedTensor& parameter : parameters) {
    parameters_.push_back(parameter.tensor);
    specs_.push_back(spec_of(parameter));
    const int64_t bytes = specs_.back().bytes();
    if (bytes >= placed_bytes_) block_bytes.push_back(bytes);
  }
  if (block_bytes.empty()) return;
  arena_ = TensorArena::make(group_.allocate(TensorArena::bytes_needed(block_bytes)), block_bytes);
}

void GradientMemory::form(const std::vector<std::vector<int>>& buckets, bool flat) {
  layouts_ = lay_out_buckets(specs_, buckets, placed_bytes_, flat);
  const int64_t bytes = std::max(layouts_.back().end, kGradientAlignment);
  there_ = on_device_ && !flat ? at::zeros({bytes}, parameters_.front().options().dtype(at::kByte))
                               : at::Tensor();
  packed_ = there_.defined() ? nullptr : group_.allocate(bytes);
  places_.assign(parameters_.size(), at::Tensor());
  for (const BucketLayout& layout : layouts_) {
    for (size_t k = 0; k < layout.packed.size(); ++k) {
      const auto i = static_cast<size_t>(layout.packed[k]);
      places_[i] = place_of(parameters_[i], layout.offsets[k]);
    }
  }
}

at::Tensor GradientMemory::place_of(const at::Tensor& like, int64_t offset) const {
  const auto strides = gradient_strides(like);
  if (packed_) return from_shared(packed_, offset, like.sizes(), like.scalar_type(), strides);
  const at::AutoDispatchBelowADInplaceOrView no_view;  // each place is a tensor of its own
  return there_.view(like.scalar_type())
      .as_strided(like.sizes(),
                  strides.empty() ? at::detail::defaultStrides(like.sizes()) : strides.vec(),
                  offset / like.element_size());
}

void GradientMemory::serving(bool on) {
  if (!arena_) return;
  serving_ = on;
  if (on) {
    TensorArena::serve_this_thread(arena_);
  } else {
    TensorArena::stop_serving_this_thread(arena_);
  }
}

at::Tensor GradientMemory::empty_for(size_t index) const {
  const at::Tensor& like = parameters_[index];
  const auto strides = gradient_strides(like);
  const auto options = at::TensorOptions().dtype(like.scalar_type());
  const ServesFirst own(arena_, serving_);
  return strides.empty() ? at::empty(like.sizes(), options)
                         : at::empty_strided(like.sizes(), strides, options);
}

/// True if it fills a block of the arena exactly as the parameter's gradient would.
bool GradientMemory::fills_block(const at::Tensor& tensor, size_t index) const {
  return arena_->holds(tensor.data_ptr()) &&
         tensor.storage().nbytes() == static_cast<size_t>(specs_[index].bytes()) &&
         has_gradient_layout(tensor, parameters_[index]);
}

bool GradientMemory::may_stay(const at::Tensor& grad, const at::Tensor& arrived,
                              size_t index) const {
  if (!is_placed(index)) return grad.data_ptr() == places_[index].data_ptr();
  return fills_block(grad, index) && has_memory_alone(grad, arrived);
}

/// True if an earlier pass made this .grad.
bool GradientMemory::is_made(const at::Tensor& grad, size_t index) const {
  return made_[index]._unsafe_get_target() == grad.unsafeGetTensorImpl();
}

/// True if no program can distinguish this .grad, which existed before the pass, from another
/// tensor.
bool GradientMemory::may_replace(const at::Tensor& grad, size_t index) const {
  if (!is_made(grad, index)) return false;
  // All places on a device share one storage, so its use count does not show views of one of them.
  return grad.use_count() == 1 && (there_.defined() || grad.storage().use_count() == 1);
}

/// The place in which to reduce a gradient that cannot stay. A block that `arrived` leaves belongs
/// to a large gradient.
at::Tensor GradientMemory::place_for(size_t index, const at::Tensor& arrived) const {
  if (!is_placed(index)) return places_[index];
  if (is_left_over(arrived, parameters_[index].grad()) && fills_block(arrived, index)) {
    return arrived.detach();
  }
  return empty_for(index);
}

void GradientMemory::set_gradient(size_t index, const at::Tensor& grad) {
  parameters_[index].mutable_grad() = grad;
  made_[index] = WeakTensor(grad.getIntrusivePtr());
}

void GradientMemory::take_home(size_t index) {
  const at::Tensor& grad = parameters_[index].grad();
  homes_[index] = grad.defined() ? grad : at::empty_like(parameters_[index]);
}

void GradientMemory::begin_pass() {
  for (size_t i = 0; i < preset_.size(); ++i) preset_[i] = parameters_[i].grad().defined();
  copied_.clear();
  of_program_.clear();
}

void GradientMemory::saw(int index, const at::Tensor& arrived) {
  const auto i = static_cast<size_t>(index);
  const at::Tensor& grad = parameters_[i].grad();
  if (!arrived.defined() || !grad.defined() || !arrived.is_alias_of(grad)) return;
  made_[i] = WeakTensor(grad.getIntrusivePtr());
}

void GradientMemory::stage(int index, const at::Tensor& arrived) {
  const at::NoGradGuard no_grad;
  const auto i = static_cast<size_t>(index);
  const at::Tensor& grad = parameters_[i].grad();
  const bool taken_over = grad.defined() && arrived.defined() && arrived.is_alias_of(grad);
  const bool is_new = !grad.defined() || !preset_[i] || taken_over;
  if (!is_away(i) && grad.defined() && may_stay(grad, arrived, i)) {
    if (is_new) made_[i] = WeakTensor(grad.getIntrusivePtr());
    reduced_[i] = grad;
    return;
  }
  if (is_placed(i)) {
    copied_.push_back(index);
    if (!is_new) of_program_.push_back(index);
  }
  const at::Tensor place = place_for(i, arrived);
  if (grad.defined()) {
    place.copy_(grad);
  } else {
    place.zero_();
  }
  reduced_[i] = place;
  if (is_away(i) || !(is_new || may_replace(grad, i))) {
    take_home(i);
  } else {
    set_gradient(i, place);
  }
}

void GradientMemory::contribute_without_gradient(int index) {
  const at::NoGradGuard no_grad;
  const auto i = static_cast<size_t>(index);
  const at::Tensor& grad = parameters_[i].grad();
  const at::Tensor place = place_for(i, {});
  reduced_[i] = place;
  if (!grad.defined()) {
    place.zero_();
  } else if (!is_away(i) && grad.data_ptr() == place.data_ptr()) {
    backups_[i] = grad.clone();
  } else {
    place.copy_(grad);
  }
}

void GradientMemory::accept(int index) {
  const auto i = static_cast<size_t>(index);
  const at::Tensor& grad = parameters_[i].grad();
  if (homes_[i].defined() || backups_[i].defined()) return;  // set aside, or at its place
  if (is_away(i) || (grad.defined() && !may_replace(grad, i))) {
    take_home(i);
  } else {
    set_gradient(i, reduced_[i]);
  }
}

void GradientMemory::decline(int index) {
  const at::NoGradGuard no_grad;
  const auto i = static_cast<size_t>(index);
  if (backups_[i].defined()) reduced_[i].copy_(backups_[i]);
  // Set aside: one that a pass made is undefined on the other ranks, too.
  if (homes_[i].defined() && !is_made(homes_[i], i)) parameters_[i].mutable_grad() = homes_[i];
  reduced_[i] = homes_[i] = at::Tensor();
}

void GradientMemory::deliver() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < homes_.size(); ++i) {
    if (!homes_[i].defined()) continue;
    if (reduced_[i].defined()) homes_[i].copy_(reduced_[i]);  // else set aside, in no bucket
    parameters_[i].mutable_grad() = homes_[i];
  }
}

void GradientMemory::set_aside() {
  for (size_t i = 0; i < homes_.size(); ++i) {
    at::Tensor& grad = parameters_[i].mutable_grad();
    if (grad.defined() && !may_replace(grad, i)) homes_[i] = grad;
    grad.reset();
  }
}

void GradientMemory::release() {
  for (auto* list : {&reduced_, &homes_, &backups_}) list->assign(parameters_.size(), at::Tensor());
}

void GradientMemory::scale(double factor) {
  const at::NoGradGuard no_grad;
  for (at::Tensor& tensor : reduced_) {
    if (tensor.defined()) tensor.mul_(factor);
  }
}

at::Tensor GradientMemory::flat(const BucketLayout& bucket) const {
  if (!bucket.placed.empty()) {
    const at::NoGradGuard no_grad;
    const at::Tensor& alone = reduced(bucket.placed.front());
    return alone.as_strided({alone.numel()}, {1});
  }
  const GradientSpec& spec = specs_[static_cast<size_t>(bucket.packed.front())];
  return from_shared(packed_, bucket.begin, {(bucket.end - bucket.begin) / spec.element_bytes},
                     to_scalar_type(static_cast<DType>(spec.kind)));
}

/// All gradients are packed there.
at::Tensor GradientMemory::packed_there(const BucketLayout& bucket) const {
  const at::AutoDispatchBelowADInplaceOrView no_view;
  const GradientSpec& spec = specs_[static_cast<size_t>(bucket.packed.front())];
  return there_.narrow(0, bucket.begin, bucket.end - bucket.begin)
      .view(to_scalar_type(static_cast<DType>(spec.kind)));
}

std::vector<GradientMemory::BucketPart> GradientMemory::parts(const BucketLayout& bucket) {
  std::vector<BucketPart> list;
  if (!bucket.packed.empty()) {
    const GradientSpec& spec = specs_[static_cast<size_t>(bucket.packed.front())];
    list.push_back({static_cast<char*>(packed_->data()) + bucket.begin,
                    (bucket.end - bucket.begin) / spec.element_bytes,
                    static_cast<DType>(spec.kind)});
  }
  for (const int index : bucket.placed) {
    const auto i = static_cast<size_t>(index);
    list.push_back(
        {reduced_[i].data_ptr(), specs_[i].elements, static_cast<DType>(specs_[i].kind)});
  }
  return list;
}

void GradientMemory::launch(const BucketLayout& bucket, ReduceOp op, std::vector<Work>& works,
                            CallSite site) {
  if (there_.defined()) {
    works.push_back(all_reduce(group_, packed_there(bucket), op, {.async = true}, site));
    return;
  }
  for (const BucketPart& part : parts(bucket)) {
    works.push_back(
        group_.all_reduce(part.data, part.count, part.dtype, op, {.async = true}, site));
  }
}

std::vector<at::Tensor> GradientMemory::like_parts(const BucketLayout& bucket,
                                                   std::span<const at::Tensor> gradients) const {
  std::vector<at::Tensor> list;
  if (!bucket.packed.empty()) {
    const at::Tensor all = at::zeros({bucket.end - bucket.begin}, at::kByte);
    for (size_t k = 0; k < bucket.packed.size(); ++k) {
      const auto i = static_cast<size_t>(bucket.packed[k]);
      const at::Tensor& place = places_[i];
      at::from_blob(all.data_ptr<uint8_t>() + bucket.offsets[k] - bucket.begin, place.sizes(),
                    place.strides(), at::TensorOptions().dtype(place.scalar_type()))
          .copy_(gradients[i]);
    }
    list.push_back(all);
  }
  for (const int index : bucket.placed) {
    const auto i = static_cast<size_t>(index);
    const at::Tensor& like = reduced_[i];
    const at::Tensor& given = gradients[i];
    list.push_back(
        given.strides() == like.strides()
            ? given
            : at::empty_strided(like.sizes(), like.strides(), like.options()).copy_(given));
  }
  return list;
}

std::vector<std::function<void()>> GradientMemory::launch(
    const BucketLayout& bucket, std::span<const std::span<const at::Tensor>> earlier,
    SubtreeReduction& reduction, CallSite site) {
  const at::NoGradGuard no_grad;
  std::vector<std::vector<at::Tensor>> others;
  for (const auto& gradients : earlier) others.push_back(like_parts(bucket, gradients));
  std::vector<std::function<void()>> finishes;
  const auto list = parts(bucket);
  for (size_t k = 0; k < list.size(); ++k) {
    std::vector<const void*> values;
    for (const auto& other : others) values.push_back(other[k].data_ptr());
    values.push_back(list[k].data);
    finishes.push_back(reduction.start(values, list[k].data, list[k].count, list[k].dtype, site));
  }
  return finishes;
}

void GradientMemory::divide(const BucketLayout& bucket, int divisor) {
  for (const BucketPart& part : parts(bucket)) {
    lockstep::divide(part.data, part.count, part.dtype, divisor);
  }
}

}  // namespace lockstep::inline internal
