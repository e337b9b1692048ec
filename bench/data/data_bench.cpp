// Speed of the loader with batches of CIFAR-10: crop, flip, normalise. CPU time is that of its
// worker threads and of the consumer, so the figure is valid on a busy machine too.
//
// usage: bench_data [SECONDS a measurement=1]

#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <numeric>
#include <string>

#include "lockstep/data/batches.h"
#include "lockstep/data/cifar10.h"
#include "lockstep/data/loader.h"
#include "lockstep/error.h"

namespace {

using namespace lockstep;

constexpr int64_t kRecords = 10'000;

std::shared_ptr<const Cifar10> make_records() {
  std::string bytes(static_cast<size_t>(kRecords * Cifar10::kRecordBytes), '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 2654435761U >> 24);
  for (size_t i = 0; i < bytes.size(); i += Cifar10::kRecordBytes) bytes[i] = 0;
  auto data = std::make_shared<Cifar10>();
  data->append(bytes, "benchmark");
  return data;
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void measure(const std::shared_ptr<const Cifar10>& data, int64_t batch_size, int threads,
             double seconds) {
  using Clock = std::chrono::steady_clock;
  Loader loader(
      image_batches(data, ImageTransform({RandomCrop{}, RandomHorizontalFlip{}, Normalize{}},
                                         data->shape(), 1)),
      {.batch_size = batch_size, .threads = threads});
  std::vector<int64_t> order(kRecords);
  std::iota(order.begin(), order.end(), 0);
  const double cpu = cpu_seconds();
  const auto begin = Clock::now();
  int64_t images = 0;
  std::chrono::duration<double> elapsed{};
  for (int64_t epoch = 0; elapsed.count() < seconds; ++epoch) {
    loader.start(epoch, {order});
    while (const auto batch = loader.next()) images += batch->valid;
    elapsed = Clock::now() - begin;
  }
  const auto count = static_cast<double>(images);
  fmt::print("{:>6} {:>8} {:>12.0f} {:>18.0f} {:>14.2f}\n", batch_size, threads,
             count / elapsed.count(), count / (cpu_seconds() - cpu),
             1e6 * (cpu_seconds() - cpu) / count);
}

int body(int argc, char** argv) {
  const double seconds = argc > 1 ? std::strtod(argv[1], nullptr) : 1.0;
  const auto data = make_records();
  fmt::print(" batch  threads     images/s  images/s per core   CPU us/image\n");
  for (const int64_t batch_size : {32, 128}) {
    for (const int threads : {1, 2}) measure(data, batch_size, threads, seconds);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_main("bench_data", body, argc, argv);
}
