#include "lockstep/models/deform/deform_conv.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/init.h>

#include <algorithm>

#include "lockstep/error.h"
#include "lockstep/models/deform/taps.h"

namespace lockstep::inline internal {
namespace {

deform::Shape shape_of(const at::Tensor& x, const at::Tensor& weight, Pair stride, Pair padding) {
  const auto outputs = [](int64_t size, int64_t kernel, int64_t step, int64_t pad) {
    return (size + 2 * pad - kernel) / step + 1;
  };
  deform::Shape s{};
  s.channels = x.size(1);
  s.rows = x.size(2);
  s.columns = x.size(3);
  s.kernel_rows = weight.size(2);
  s.kernel_columns = weight.size(3);
  s.stride_rows = stride[0];
  s.stride_columns = stride[1];
  s.pad_rows = padding[0];
  s.pad_columns = padding[1];
  s.out_rows = outputs(s.rows, s.kernel_rows, stride[0], padding[0]);
  s.out_columns = outputs(s.columns, s.kernel_columns, stride[1], padding[1]);
  return s;
}

void check_deform(const at::Tensor& x, const at::Tensor& offset, const at::Tensor& mask,
                  const at::Tensor& weight, Pair stride, Pair padding) {
  if (x.dim() == 4 && weight.dim() == 4 && x.size(1) == weight.size(1)) {
    const auto s = shape_of(x, weight, stride, padding);
    const auto fits = [&](const at::Tensor& maps, int64_t channels) {
      return maps.sizes() == at::IntArrayRef({x.size(0), channels, s.out_rows, s.out_columns});
    };
    if (fits(offset, 2 * s.taps()) && fits(mask, s.taps())) return;
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("deform_conv2d: x ({}), offset ({}), mask ({}), weight ({}) do not fit",
                          fmt::join(x.sizes(), ", "), fmt::join(offset.sizes(), ", "),
                          fmt::join(mask.sizes(), ", "), fmt::join(weight.sizes(), ", ")));
}

/// (O, C, rows, columns) -> (O, K C): the column order of a place.
at::Tensor as_matrix(const at::Tensor& weight) {
  return weight.permute({0, 2, 3, 1}).reshape({weight.size(0), -1});
}

/// (n, C, H, W) -> (n, H, W, C), contiguous.
at::Tensor channels_together(const at::Tensor& images) {
  return images.permute({0, 2, 3, 1}).contiguous();
}

/// Calls body with a null pointer of the tensors' type, as a tag.
template <typename Body>
void with_type(at::ScalarType type, const Body& body) {
  if (type == at::kDouble) {
    body(static_cast<double*>(nullptr));
  } else {
    body(static_cast<float*>(nullptr));
  }
}

/// tap_columns() as loops on the CPU: one image.
at::Tensor looped_columns(const deform::Shape& s, const at::Tensor& x, const at::Tensor& offset,
                          const at::Tensor& mask) {
  at::Tensor columns = at::empty({s.places(), s.taps() * s.channels}, x.options());
  with_type(x.scalar_type(), [&]<typename T>(T*) {
    deform::gather<T>(s, x.data_ptr<T>(), offset.data_ptr<T>(), mask.data_ptr<T>(),
                      columns.data_ptr<T>());
  });
  return columns;
}

/// tap_gradients() as loops on the CPU: one image.
deform::Gradients looped_gradients(const deform::Shape& s, const at::Tensor& x,
                                   const at::Tensor& offset, const at::Tensor& mask,
                                   const at::Tensor& grad_columns) {
  deform::Gradients to{at::zeros_like(x), at::empty_like(offset), at::empty_like(mask)};
  with_type(x.scalar_type(), [&]<typename T>(T*) {
    const T *grad = grad_columns.data_ptr<T>(), *offsets = offset.data_ptr<T>(),
            *masks = mask.data_ptr<T>();
    deform::scatter<T>(s, grad, offsets, masks, to.x.data_ptr<T>());
    deform::gradients_of_taps<T>(s, x.data_ptr<T>(), grad, offsets, masks, to.offset.data_ptr<T>(),
                                 to.mask.data_ptr<T>());
  });
  return to;
}

/// An implementation, and its number of images per call.
struct Way {
  decltype(&looped_columns) columns;
  decltype(&looped_gradients) gradients;
  int64_t images;
};

/// `numbers`: columns per call, or 0 for the loops of the CPU.
Way way_of(const deform::Shape& s, int64_t numbers) {
  if (numbers == 0) return {&looped_columns, &looped_gradients, 1};
  const int64_t of_image = std::max<int64_t>(1, s.places() * s.taps() * s.channels);
  return {&deform::tap_columns, &deform::tap_gradients, std::max<int64_t>(1, numbers / of_image)};
}

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class DeformConvFunction : public torch::autograd::Function<DeformConvFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& offset,
                            const at::Tensor& mask, const at::Tensor& weight, Pair stride,
                            Pair padding, int64_t numbers) {
    context->save_for_backward({x, offset, mask, weight});
    context->saved_data["geometry"] =
        std::vector<int64_t>{stride[0], stride[1], padding[0], padding[1], numbers};
    const auto s = shape_of(x, weight, stride, padding);
    const Way way = way_of(s, numbers);
    const at::Tensor out =
        at::empty({x.size(0), weight.size(0), s.out_rows, s.out_columns}, x.options());
    const at::Tensor matrix = as_matrix(weight);
    for (int64_t n = 0; n < x.size(0); n += way.images) {
      const Part part{n, std::min(way.images, x.size(0) - n)};
      const auto columns =
          way.columns(s, channels_together(part.of(x)), part.of(offset), part.of(mask));
      at::Tensor product = at::empty({weight.size(0), columns.size(0)}, x.options());
      at::mm_out(product, matrix, columns.t());  // autocast does not change it
      part.of(out).flatten(2).copy_(
          product.view({weight.size(0), part.images, s.places()}).transpose(0, 1));
    }
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &offset = saved[1], &mask = saved[2], &weight = saved[3];
    const auto g = context->saved_data["geometry"].toIntVector();
    const auto s = shape_of(x, weight, {g[0], g[1]}, {g[2], g[3]});
    const Way way = way_of(s, g[4]);
    const at::Tensor matrix = as_matrix(weight);
    at::Tensor grad_matrix = at::zeros_like(matrix);
    const at::Tensor grad_x = at::empty_like(x), grad_offset = at::empty_like(offset),
                     grad_mask = at::empty_like(mask);
    for (int64_t n = 0; n < x.size(0); n += way.images) {
      const Part part{n, std::min(way.images, x.size(0) - n)};
      const at::Tensor images = channels_together(part.of(x));
      const at::Tensor offsets = part.of(offset), masks = part.of(mask);
      const at::Tensor grad =  // (O, places)
          part.of(grads[0]).flatten(2).transpose(0, 1).reshape({weight.size(0), -1});
      grad_matrix.addmm_(grad, way.columns(s, images, offsets, masks));
      const auto back = way.gradients(s, images, offsets, masks, at::mm(grad.t(), matrix));
      part.of(grad_x).copy_(back.x.permute({0, 3, 1, 2}));
      part.of(grad_offset).copy_(back.offset);
      part.of(grad_mask).copy_(back.mask);
    }
    const at::Tensor grad_weight =
        grad_matrix.view({weight.size(0), s.kernel_rows, s.kernel_columns, s.channels})
            .permute({0, 3, 1, 2})
            .contiguous();
    const at::Tensor none;
    return {grad_x, grad_offset, grad_mask, grad_weight, none, none, none};
  }

 private:
  /// A range of the images.
  struct Part {
    int64_t first, images;
    at::Tensor of(const at::Tensor& all) const { return all.narrow(0, first, images); }
  };
};

/// `numbers` as in way_of().
at::Tensor convolved(const at::Tensor& x, const at::Tensor& offset, const at::Tensor& mask,
                     const at::Tensor& weight, const at::Tensor& bias, Pair stride, Pair padding,
                     int64_t numbers) {
  check_deform(x, offset, mask, weight, stride, padding);
  const auto type = as_full_precision(x).scalar_type();
  const auto ready = [&](const at::Tensor& value) { return value.to(type).contiguous(); };
  const at::Tensor out = DeformConvFunction::apply(ready(x), ready(offset), ready(mask),
                                                   ready(weight), stride, padding, numbers);
  return (bias.defined() ? out + bias.to(type).view({1, -1, 1, 1}) : out).to(x.scalar_type());
}

}  // namespace

at::Tensor deform_conv2d(const at::Tensor& x, const at::Tensor& offset, const at::Tensor& mask,
                         const at::Tensor& weight, const at::Tensor& bias, Pair stride,
                         Pair padding) {
  const int64_t numbers = x.is_cpu() ? 0 : kDeformColumns;
  return convolved(x, offset, mask, weight, bias, stride, padding, numbers);
}

at::Tensor deform_conv2d_composite(const at::Tensor& x, const at::Tensor& offset,
                                   const at::Tensor& mask, const at::Tensor& weight,
                                   const at::Tensor& bias, Pair stride, Pair padding,
                                   int64_t numbers) {
  return convolved(x, offset, mask, weight, bias, stride, padding, std::max<int64_t>(1, numbers));
}

torch::nn::Conv2d make_offset_conv(const torch::nn::Conv2d& conv) {
  const auto& of = conv->options;
  const int64_t taps = conv->weight.size(2) * conv->weight.size(3);
  torch::nn::Conv2d offsets(torch::nn::Conv2dOptions(of.in_channels(), 3 * taps, of.kernel_size())
                                .stride(of.stride())
                                .padding(of.padding()));
  torch::nn::init::zeros_(offsets->weight);
  torch::nn::init::zeros_(offsets->bias);
  return offsets;
}

at::Tensor deformed(torch::nn::Conv2d& conv, torch::nn::Conv2d& offset_conv, const at::Tensor& x) {
  const at::Tensor maps = offset_conv->forward(x);
  const int64_t taps = maps.size(1) / 3;
  // std::get or, in libtorch 1.13, c10::get.
  const auto& padding = get<torch::ExpandingArray<2>>(conv->options.padding());
  return deform_conv2d(x, maps.narrow(1, 0, 2 * taps), maps.narrow(1, 2 * taps, taps).sigmoid(),
                       conv->weight, conv->bias,
                       {(*conv->options.stride())[0], (*conv->options.stride())[1]},
                       {(*padding)[0], (*padding)[1]});
}

}  // namespace lockstep::inline internal
