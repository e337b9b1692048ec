#include "tests/tensor/support/guarded_device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <sys/mman.h>
#include <torch/library.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>
#if __has_include(<ATen/detail/PrivateUse1HooksInterface.h>)
#define LOCKSTEP_TEST_DEVICE_HOOKS
#include <ATen/detail/PrivateUse1HooksInterface.h>
#endif

#include "lockstep/base/mutex.h"
#include "lockstep/torch/torch_compat.h"

namespace lockstep::testing {
namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;
thread_local int current_device = 0;
thread_local int waits_of_thread = 0;

size_t round_to_pages(size_t bytes) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return (std::max<size_t>(bytes, 1) + page - 1) / page * page;
}

/// A page before each block holds its length.
struct ClosedPages {
  static c10::DataPtr allocate(size_t bytes) {
    const size_t page = round_to_pages(1);
    const size_t length = page + round_to_pages(bytes);
    void* start =
        ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) throw std::bad_alloc();
    *static_cast<size_t*>(start) = length;
    char* data = static_cast<char*>(start) + page;
    ::mprotect(data, length - page, PROT_NONE);
    return {data, data, &release,
            c10::Device(kType, static_cast<c10::DeviceIndex>(current_device))};
  }
  static void release(void* data) {
    char* start = static_cast<char*>(data) - round_to_pages(1);
    ::munmap(start, *reinterpret_cast<size_t*>(start));
  }
};

c10::Allocator& closed_pages() {
  static torch_compat::Allocator<ClosedPages> pages;
  return pages;
}

/// Opens a tensor's memory during its lifetime. Other threads' tensors need no exclusion: memory
/// that another thread opens meanwhile is only left unchecked.
class Opened {
 public:
  explicit Opened(const at::Tensor& tensor) : tensor_(tensor) { protect(PROT_READ | PROT_WRITE); }
  ~Opened() { protect(PROT_NONE); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  /// The same memory as a tensor of the CPU.
  at::Tensor on_cpu() const {
    if (tensor_.is_cpu()) return tensor_;
    return at::from_blob(tensor_.data_ptr(), tensor_.sizes(), tensor_.strides(),
                         at::TensorOptions().dtype(tensor_.scalar_type()));
  }

 private:
  void protect(int how) const {
    if (tensor_.is_cpu()) return;
    const void* const data = tensor_.storage().data();
    ::mprotect(const_cast<void*>(data), round_to_pages(tensor_.storage().nbytes()), how);
  }
  const at::Tensor& tensor_;
};

Mutex& copying() {
  static Mutex mutex;
  return mutex;
}

at::Tensor& copy_(at::Tensor& self, const at::Tensor& source, bool /*non_blocking*/) {
  const MutexLock lock(copying());
  if (self.storage().data() == source.storage().data())
    throw std::logic_error("copy within memory");
  const Opened to(self);
  const Opened from(source);
  to.on_cpu().copy_(from.on_cpu());
  return self;
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& to, bool non_blocking) {
  at::Tensor result = to;
  return copy_(result, self, non_blocking);
}

void on_cpu(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  at::native::cpu_fallback(operation, stack);
}

at::Tensor empty(at::IntArrayRef sizes, c10::optional<at::ScalarType> dtype,
                 c10::optional<at::Layout>, c10::optional<at::Device> device, c10::optional<bool>,
                 c10::optional<at::MemoryFormat> format) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_generic(sizes, &closed_pages(),
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides,
                         c10::optional<at::ScalarType> dtype, c10::optional<at::Layout>,
                         c10::optional<at::Device> device, c10::optional<bool>) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_strided_generic(sizes, strides, &closed_pages(),
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           c10::dtype_or_default(dtype));
}

/// A fallback fills its output by this; functions like arange() pass a tensor of no elements.
at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& to) {
  if (to.sizes() != self.sizes()) {
    const at::Tensor room = empty(self.sizes(), to.scalar_type(), c10::nullopt, to.device(),
                                  c10::nullopt, c10::nullopt);
    to.unsafeGetTensorImpl()->set_storage_keep_dtype(room.storage());
    to.unsafeGetTensorImpl()->set_sizes_contiguous(self.sizes());
  }
  return copy_from(self, to, false);
}

using MaybeTensor = c10::optional<at::Tensor>;

MaybeTensor copied(const MaybeTensor& tensor) {
  return tensor && tensor->defined() ? MaybeTensor(tensor->cpu()) : tensor;
}

void copy_back(const MaybeTensor& tensor, const MaybeTensor& from) {
  if (tensor && tensor->defined()) tensor->copy_(*from);
}

/// It writes to its running statistics, which its schema omits, so a fallback would lose them.
std::tuple<at::Tensor, at::Tensor, at::Tensor> native_batch_norm(
    const at::Tensor& input, const MaybeTensor& weight, const MaybeTensor& bias,
    const MaybeTensor& mean, const MaybeTensor& var, bool training, double momentum, double eps) {
  const MaybeTensor own_mean = copied(mean), own_var = copied(var);
  const auto [output, saved_mean, saved_var] = at::native_batch_norm(
      input.cpu(), copied(weight), copied(bias), own_mean, own_var, training, momentum, eps);
  copy_back(mean, own_mean);
  copy_back(var, own_var);
  const c10::Device device = input.device();
  return {output.to(device), saved_mean.to(device), saved_var.to(device)};
}

struct GuardImpl final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    uncheckedSetDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return guarded_device(current_device); }
  void setDevice(c10::Device device) const override { uncheckedSetDevice(device); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) current_device = device.index();
  }
  c10::Stream getStream(c10::Device device) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return kGuardedDevices; }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool /*high*/) const override {
    return getStream(device);
  }
  // Every operation is done when its call returns, so events have nothing to wait for.
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  void record(void** /*event*/, const c10::Stream&, const c10::DeviceIndex,
              const c10::EventFlag) const override {}
  void block(void* /*event*/, const c10::Stream&) const override { ++guarded_events.blocked; }
  bool queryEvent(void* /*event*/) const override { return !guarded_events.held; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override { ++waits_of_thread; }
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, GuardImpl);

#ifdef LOCKSTEP_TEST_DEVICE_HOOKS
/// libtorch 2.x asks these about an accelerator, as backward() needs one for any device but the
/// CPU.
struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex /*index*/) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return kGuardedDevices; }
  c10::DeviceIndex getCurrentDevice() const override {
    return static_cast<c10::DeviceIndex>(current_device);
  }
  void setCurrentDevice(c10::DeviceIndex index) const override { current_device = index; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    return static_cast<c10::DeviceIndex>(std::exchange(current_device, index));
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return exchangeDevice(index);
  }
  /// manual_seed() seeds it; random numbers are drawn on the CPU.
  const at::Generator& getDefaultGenerator(c10::DeviceIndex /*index*/) const override {
    static const at::Generator generator = at::detail::createCPUGenerator();
    return generator;
  }
};

const bool has_hooks = [] {
  static Hooks hooks;
  c10::register_privateuse1_backend("privateuseone");  // else it is no accelerator
  at::RegisterPrivateUse1HooksInterface(&hooks);
  return true;
}();
#endif

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("view", &at::native::view);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
  library.impl("copy_", &copy_);
  library.impl("_copy_from", &copy_from);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("native_batch_norm", &native_batch_norm);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&on_cpu>());
}

}  // namespace

c10::Device guarded_device(int index) {
  return {kType, static_cast<c10::DeviceIndex>(index)};
}

int guarded_waits() {
  return waits_of_thread;
}

void move_to_guarded_device(const std::vector<at::Tensor>& tensors, int index) {
  const at::NoGradGuard no_grad;
  const c10::Device device = guarded_device(index);
  for (const auto& tensor : tensors) {
    const at::Tensor there = tensor.detach().to(device);
    auto* const impl = tensor.unsafeGetTensorImpl();
    impl->set_storage_keep_dtype(there.storage());
    impl->_change_backend_component_keys(device);
  }
}

}  // namespace lockstep::testing
