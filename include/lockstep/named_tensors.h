#pragma once
// Tensors is a list of tensors, each of which may have a name: inputs and outputs of a network, and
// targets of a loss. It is a std::vector, so that code without names takes it as one.
//
// Use:
//   const lockstep::Tensors sides = {{"left", images}, {"right", labels}};
//   const at::Tensor both = at::cat({sides["left"], sides["right"]});  // or sides[0], sides[1]
//
// Maps within maps have one name for each tensor, such as "box.left".
//
// Threads: one at a time changes a list. Copies share the tensors.
// Cost: that of a vector. A search by name compares one name after the other.
// Errors: kInvalidArgument, as below.

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

class Tensors : public std::vector<at::Tensor> {
 public:
  struct Item {
    std::string name;  ///< Empty: none.
    at::Tensor tensor;
  };

  using std::vector<at::Tensor>::vector;
  Tensors() = default;
  Tensors(std::vector<at::Tensor> tensors) : vector(std::move(tensors)) {}
  /// Errors: those of add().
  Tensors(std::initializer_list<Item> items);

  /// Appends a tensor. Errors: kInvalidArgument for a name that the list has.
  void add(std::string name, at::Tensor tensor);

  /// Errors: kInvalidArgument with the number of tensors that there are. [-1] is one: see back().
  const at::Tensor& operator[](size_t place) const {
    if (place >= size()) refuse(place);
    return vector::operator[](place);
  }
  at::Tensor& operator[](size_t place) {
    if (place >= size()) refuse(place);
    return vector::operator[](place);
  }
  const at::Tensor& front() const { return (*this)[0]; }
  at::Tensor& front() { return (*this)[0]; }
  const at::Tensor& back() const { return (*this)[size() - (empty() ? 0 : 1)]; }
  at::Tensor& back() { return (*this)[size() - (empty() ? 0 : 1)]; }
  /// Errors: kInvalidArgument with the names that there are, and the nearest.
  const at::Tensor& operator[](std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  /// Of each tensor; empty for one without.
  std::vector<std::string> names() const;

  void clear() { *this = Tensors(); }
  // A name belongs to a place. These would part names from their tensors: make a new list instead.
  void assign() = delete;
  void emplace() = delete;
  void erase() = delete;
  void insert() = delete;
  void pop_back() = delete;
  void resize() = delete;
  void swap() = delete;

 private:
  [[noreturn]] void refuse(size_t place) const;
  const at::Tensor* find(std::string_view name) const;

  std::vector<std::string> names_;  // of the first tensors; the others have none
};

}  // namespace lockstep
