// Gloo's all_reduce: RANK=r WORLD_SIZE=n STORE=FOLDER IFACE=lo allreduce_gloo NAME ALGORITHM, with
// ring (torch's default), bcube, hd (halving-doubling) or ringc (chunked ring). SIZES, ROUNDS: see
// rounds.h.

#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <unistd.h>

#include <memory>

#include "rounds.h"

namespace {

using Context = std::shared_ptr<gloo::rendezvous::Context>;

Context connect(int rank, int size) {
  gloo::transport::tcp::attr attributes;
  attributes.iface = peers::env_or("IFACE", "lo");
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(peers::env_or("STORE", "."));
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->connectFullMesh(store, device);
  return context;
}

/// A number that identifies calls of one context, equal on all ranks.
uint32_t next_tag() {
  static uint32_t tag = 0;
  return tag++ & 0xffff;
}

void barrier(const Context& context) {
  gloo::BarrierOptions options(context);
  options.setTag(next_tag());
  gloo::barrier(options);
}

using Algorithm = gloo::AllreduceOptions::Algorithm;
template <class T>
void all_reduce(const Context& context, T* values, size_t count, Algorithm algorithm,
                void (*reduce)(void*, const void*, const void*, size_t)) {
  gloo::AllreduceOptions options(context);
  options.setOutput(values, count);
  options.setTag(next_tag());
  options.setReduceFunction(reduce);
  options.setAlgorithm(algorithm);
  gloo::allreduce(options);
}

std::function<void()> made_once(std::shared_ptr<gloo::Algorithm> algorithm) {
  return [algorithm] { algorithm->run(); };
}

std::function<void()> make(const Context& context, const std::string& name,
                           std::vector<float>& values) {
  const std::vector<float*> pointers = {values.data()};
  const int count = static_cast<int>(values.size());
  if (name == "hd")
    return made_once(
        std::make_shared<gloo::AllreduceHalvingDoubling<float>>(context, pointers, count));
  if (name == "ringc")
    return made_once(std::make_shared<gloo::AllreduceRingChunked<float>>(context, pointers, count));
  const auto algorithm = name == "bcube" ? Algorithm::BCUBE : Algorithm::RING;
  return [&values, context, algorithm] {
    all_reduce(
        context, values.data(), values.size(), algorithm,
        [](void* out, const void* a, const void* b, size_t n) { gloo::sum<float>(out, a, b, n); });
  };
}

}  // namespace

int main(int argc, char** argv) {
  peers::Peer peer;
  peer.name = argc > 1 ? argv[1] : "gloo";
  peer.rank = std::stoi(peers::env_or("RANK", "0"));
  peer.size = std::stoi(peers::env_or("WORLD_SIZE", "1"));
  const std::string algorithm = argc > 2 ? argv[2] : "ring";
  const Context context = connect(peer.rank, peer.size);
  peer.barrier = [&] { barrier(context); };
  peer.all_reduce = [&](std::vector<float>& values) { return make(context, algorithm, values); };
  peer.largest = [&](double own) {
    all_reduce(
        context, &own, 1, Algorithm::RING,
        [](void* out, const void* a, const void* b, size_t n) { gloo::max<double>(out, a, b, n); });
    return own;
  };
  peers::time_all_sizes(peer);
  barrier(context);
  std::fflush(stdout);
  ::_exit(0);  // Gloo's threads may still use connections that the others have closed
}
