// Compiled into better-sqlite3 instead of the file of the same purpose among the headers of Node. Since Node 24.19 that
// file registers each object for the end of the process. If V8 collects an object while no JavaScript runs, Node aborts
// the process: "RemoveEnvironmentCleanupHook … Assertion failed: (env) != nullptr". The binaries that npm downloads were
// compiled with earlier headers. better-sqlite3 13 does not use the class, but it needs Node 22.14.

#ifndef SRC_NODE_OBJECT_WRAP_H_ // the guard of Node's file
#define SRC_NODE_OBJECT_WRAP_H_

#include <node.h>

namespace node {

// Ties a C++ object to a JavaScript object: V8 collects both together.
class ObjectWrap {
 public:
  ObjectWrap() = default;

  virtual ~ObjectWrap() {
    handle_.Reset();
  }

  template <class T>
  static T* Unwrap(v8::Local<v8::Object> handle) {
    return static_cast<T*>(static_cast<ObjectWrap*>(handle->GetAlignedPointerFromInternalField(0)));
  }

  v8::Local<v8::Object> handle() {
    return handle(v8::Isolate::GetCurrent());
  }

  v8::Local<v8::Object> handle(v8::Isolate* isolate) {
    return v8::Local<v8::Object>::New(isolate, handle_);
  }

 protected:
  void Wrap(v8::Local<v8::Object> handle) {
    handle->SetAlignedPointerInInternalField(0, this);
    handle_.Reset(v8::Isolate::GetCurrent(), handle);
    handle_.SetWeak(this, OnCollected, v8::WeakCallbackType::kParameter);
  }

 private:
  static void OnCollected(const v8::WeakCallbackInfo<ObjectWrap>& data) {
    delete data.GetParameter();
  }

  v8::Persistent<v8::Object> handle_;
};

}  // namespace node

#endif
