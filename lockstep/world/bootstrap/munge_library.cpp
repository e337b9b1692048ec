#include "lockstep/world/bootstrap/munge_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdlib>

#include "lockstep/base/env.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

// Of munge.h, which a build host may lack.
constexpr int kSuccess = 0;
constexpr int kSocketFailed = 6;
constexpr int kOptionSocket = 8;
constexpr int kOptionUser = 9;

void* open_munge() {
  if (void* library = ::dlopen("libmunge.so.2", RTLD_NOW | RTLD_LOCAL)) return library;
  throw Error(ErrorCode::kUnavailable, "libmunge.so.2 is not installed");
}

}  // namespace

struct Munge::Functions {
  void* (*create)() = nullptr;
  void (*destroy)(void* context) = nullptr;
  int (*get)(void* context, int option, ...) = nullptr;
  int (*set)(void* context, int option, ...) = nullptr;
  int (*encode)(char** credential, void* context, const void* bytes, int size) = nullptr;
  int (*decode)(const char* credential, void* context, void** bytes, int* size, uid_t* user,
                gid_t* group) = nullptr;
  const char* (*text_of)(int error) = nullptr;

  explicit Functions(void* library) {
    load(library, "munge_ctx_create", &create);
    load(library, "munge_ctx_destroy", &destroy);
    load(library, "munge_ctx_get", &get);
    load(library, "munge_ctx_set", &set);
    load(library, "munge_encode", &encode);
    load(library, "munge_decode", &decode);
    load(library, "munge_strerror", &text_of);
  }

  template <class Function>
  static void load(void* library, const char* name, Function* function) {
    *function = reinterpret_cast<Function>(::dlsym(library, name));
    if (*function == nullptr)
      throw Error(ErrorCode::kUnavailable, fmt::format("libmunge has no {}", name));
  }

  /// For one call: its settings are not thread-safe.
  std::unique_ptr<void, void (*)(void*)> context() const {
    std::unique_ptr<void, void (*)(void*)> made(create(), destroy);
    if (!made) throw std::bad_alloc();
    if (const auto socket = env("LOCKSTEP_MUNGE_SOCKET"))
      set(made.get(), kOptionSocket, socket->c_str());
    set(made.get(), kOptionUser, ::geteuid());
    return made;
  }

  /// The socket of munged: the configured one, else libmunge's default.
  std::string socket_of(void* context) const {
    const char* path = nullptr;
    if (get(context, kOptionSocket, &path) != kSuccess || path == nullptr) return "its socket";
    return path;
  }

  Error failure(int status, void* context) const {
    if (status != kSocketFailed)
      return Error(ErrorCode::kCorrupt, fmt::format("munge: {}", text_of(status)));
    return Error(ErrorCode::kUnavailable, fmt::format("munge: no munged answers at {} ({})",
                                                      socket_of(context), text_of(status)));
  }
};

const Munge& Munge::get() {
  static const Munge munge(open_munge());
  return munge;
}

Munge::Munge(void* library) : functions_(std::make_unique<Functions>(library)) {}
Munge::~Munge() = default;

std::string Munge::encode(const std::string& text) const {
  const auto context = functions_->context();
  char* made = nullptr;
  const int status =
      functions_->encode(&made, context.get(), text.data(), static_cast<int>(text.size()));
  const std::unique_ptr<char, void (*)(void*)> owned(made, std::free);
  if (status != kSuccess) {
    throw Error(ErrorCode::kUnavailable, functions_->failure(status, context.get()).what());
  }
  return owned.get();
}

std::string Munge::decode(const std::string& credential) const {
  const auto context = functions_->context();
  void* bytes = nullptr;
  int size = 0;
  uid_t user = 0;
  gid_t group = 0;
  const int status =
      functions_->decode(credential.c_str(), context.get(), &bytes, &size, &user, &group);
  const std::unique_ptr<void, void (*)(void*)> owned(bytes, std::free);
  if (status != kSuccess) throw functions_->failure(status, context.get());
  if (user != ::geteuid())
    throw Error(ErrorCode::kCorrupt, fmt::format("munge: a credential of user {}", user));
  return {static_cast<const char*>(bytes), static_cast<size_t>(size)};
}

bool munge_answers() {
  try {
    Munge::get().encode("");
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string why_no_munge() {
  if (::dlopen("libmunge.so.2", RTLD_NOW | RTLD_LOCAL) == nullptr) return "";
  try {
    Munge::get().encode("");
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace lockstep::inline internal
