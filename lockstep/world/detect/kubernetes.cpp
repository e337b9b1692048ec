// Pods of Kubeflow's Trainer v2, which sets torchrun's options as PET_*. Source:
// pkg/runtime/framework/plugins/torch/torch.go of kubeflow/trainer. They are a launcher's: only a
// pod with one process needs none.
#include "lockstep/error.h"
#include "lockstep/world/detect/source.h"

namespace lockstep {

std::optional<Identity> read_kubernetes(const Reader& read) {
  const std::string because = "other PET_ variables are";
  if (read.text("PET_NPROC_PER_NODE").value_or("auto") != "1") {
    throw Error(ErrorCode::kInvalidArgument,
                "PET_NPROC_PER_NODE is not 1, so this pod has several ranks: start the program "
                "with `lockstep run`");
  }
  Identity id;
  id.size = id.num_nodes = read.need_number("PET_NNODES", because, 1, kMaxRanks);
  id.rank = id.node_rank = read.need_number("PET_NODE_RANK", because, 0, kMaxRanks);
  check_less("PET_NODE_RANK", id.rank, "PET_NNODES", id.size);
  if (id.size > 1) {
    id.master.host = read.need("PET_MASTER_ADDR", because);
    id.master.port = read.need_number("PET_MASTER_PORT", because, 1, 65535);
  }
  id.job_id = "pet-" + read.text("PET_RDZV_ID").value_or("none");
  return id;
}

}  // namespace lockstep
