# SPDX-License-Identifier: Apache-2.0
"""Etude from Python: one file over libetude.so, by ctypes.

    import etude
    with etude.Session("recipe.yaml", "max_duration=2ep", progress=print) as s:
        s.fit()
        print(s.eval())
        y = s.predict(x)                      # NumPy in, NumPy out
    run = etude.Run(s.directory)
    run["loss/train/total"]["value"]          # a metric along the run, as an array
    etude.load(s.directory).predict(pixels)   # bytes [N,H,W,C], as the data have them

Where fields of structs are is asked of the library itself (et_layout_field), so that this
file fits each library that has what it reads; one that has not is refused by name.

Threads. Everything of a Context runs on one thread, its own, which takes no signals (the
library computes there as session.h says); calls from other threads wait for it, without
the interpreter's lock. Methods of callbacks are called on that thread. Ctrl-C ends a run
after the batch under way, saves it, and then raises KeyboardInterrupt.

Memory. What has close() is a context manager; what is not closed is when nothing refers
to it. A session's device lives until the last tensor on it is gone. An array that
Tensor.numpy() gives, or takes part in through DLPack, shares the tensor's memory and
keeps it; so does a tensor the array that it was made of.
"""
import collections
import collections.abc
import ctypes
import hashlib
import json
import os
import queue
import signal
import threading
from ctypes import (CFUNCTYPE, POINTER, byref, c_bool, c_char, c_char_p, c_double, c_int, c_int64,
                    c_size_t, c_uint64, c_void_p)

import numpy as np

__all__ = ["Callback", "Context", "Error", "Model", "Run", "Session", "Tensor", "from_dlpack",
           "load", "runs", "tensor", "train"]

# ---- the library ----


def _candidates():
    """Where it may be: as ETUDE_LIBRARY says, in the lib folder that this file is in, or where
    the system looks."""
    if os.environ.get("ETUDE_LIBRARY"):
        yield os.environ["ETUDE_LIBRARY"]
        return
    folder = os.path.dirname(os.path.abspath(__file__))
    while folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
        if os.path.basename(folder).startswith("lib"):
            path = os.path.join(folder, "libetude.so.1")
            if os.path.exists(path):
                yield path
    yield "libetude.so.1"


def _load_library():
    why = None
    for path in _candidates():
        try:
            return ctypes.CDLL(path)
        except OSError as e:
            why = why or e
    raise ImportError("libetude.so.1 cannot be loaded: %s" % why)


_lib = _load_library()


def _declare(result, name, *arguments):
    try:
        f = getattr(_lib, name)
    except AttributeError:
        raise ImportError("this libetude.so is another version: it has no %s" % name) from None
    f.restype, f.argtypes = result, arguments
    return f


_layout_field = _declare(c_bool, "et_layout_field", c_char_p, c_char_p, POINTER(c_size_t),
                         POINTER(c_size_t))


class _Struct:
    """A struct of the library: its size, and each of FIELDS where the library has it."""

    def __init__(self, name, /, **fields):
        self.name, self.place = name, {}
        for field, type_ in fields.items():
            self.place[field] = self._find(field.replace("__", "."), type_), type_

    def _find(self, field, type_):
        offset, size = c_size_t(), c_size_t()
        if not _layout_field(self.name.encode(), field.encode(), byref(offset), byref(size)):
            raise ImportError("this libetude.so is another version: struct %s has no field %s"
                              % (self.name, field))
        if type_ and ctypes.sizeof(type_) != size.value:
            raise ImportError("this libetude.so is another version: %s of struct %s has %d bytes, "
                              "not %d" % (field, self.name, size.value, ctypes.sizeof(type_)))
        return offset.value

    @property
    def size(self):
        offset, size = c_size_t(), c_size_t()
        if not _layout_field(self.name.encode(), b"", byref(offset), byref(size)):
            raise ImportError("this libetude.so is another version: no struct " + self.name)
        return size.value

    def at(self, address, field):
        offset, type_ = self.place[field]
        return type_.from_address(address + offset)

    def get(self, address, field):
        return self.at(address, field).value

    def set(self, address, field, value):
        self.at(address, field).value = value

    def new(self, n=1):
        """Memory for N of them, zeroed."""
        return ctypes.create_string_buffer(self.size * n)


_MAX_DIMS, _MAX_FIELDS = 6, 8
_error = _Struct("et_error", status=c_int, code=c_int, message=c_char * 1024, hint=c_char * 256)
_diagnostics = _Struct("et_diagnostics", n=c_int, v=None)
_diagnostic = _Struct("et_diagnostic", code=c_int)
_desc = _Struct("et_desc", dtype=c_int, ndim=c_int, shape=c_int64 * _MAX_DIMS,
                stride=c_int64 * _MAX_DIMS)
_tensor = _Struct("et_tensor", desc=None)
_device_info = _Struct("et_device_info", name=c_char * 128, threads=c_int, host_memory=c_bool)
_override = _Struct("et_override", kind=c_int, text=c_char_p)
_options = _Struct("et_session_options", overrides=c_void_p, n_overrides=c_int, threads=c_int,
                   device=c_char_p, directory=c_char_p, no_directory=c_bool, no_train=c_bool,
                   no_eval=c_bool, events=c_uint64, fn=c_void_p, data=c_void_p, env=c_void_p)
_recipe_env = _Struct("et_recipe_env", load_plugins=c_void_p)
_plugin_entry = _Struct("et_plugin_entry", name=c_char_p, path=c_char_p, sha256=c_char_p)
_batch = _Struct("et_batch", field=None, n_fields=c_int, fields=c_void_p)
_batch_field = _Struct("et_batch_field", desc=None, host=c_void_p)
_field = _Struct("et_field", name=c_char_p)
_raw_field = _Struct("et_raw_field", name=c_char_p, desc=None, data=c_void_p)
_series = _Struct("et_series", name=c_char * 96, all__n=c_int64, all__bad=c_int64)
_point = _Struct("et_series_point", ba=c_int64, t=c_double, value=c_double)
_record = _Struct("et_record", kind=c_int, t=c_double, seq=c_int64, ep=c_int64, ba=c_int64,
                  sp=c_int64, text=c_char_p, entry=c_void_p, n=c_int)
_entry = _Struct("et_log_entry", name=c_char * 96, value=c_double)

_FN = CFUNCTYPE(c_int, c_void_p, c_int, c_void_p)
_RELEASE = CFUNCTYPE(None, c_void_p)
_LOAD = CFUNCTYPE(c_int, c_void_p, POINTER(c_char_p), c_void_p, c_int, c_void_p,
                  POINTER(c_void_p))
_P, _PP = c_void_p, POINTER(c_void_p)

_ctx_new = _declare(c_int, "et_ctx_new", _PP)
_ctx_free = _declare(None, "et_ctx_free", _PP)
_error_get = _declare(c_void_p, "et_error_get", _P)
_error_clear = _declare(None, "et_error_clear", _P)
_status_name = _declare(c_char_p, "et_status_name", c_int)
_dtype_name = _declare(c_char_p, "et_dtype_name", c_int)
_event_name = _declare(c_char_p, "et_event_name", c_int)
_event_parse = _declare(c_int, "et_event_parse", _P, c_char_p, POINTER(c_int))
_record_name = _declare(c_char_p, "et_record_name", c_int)
_diagnostic_text = _declare(c_char_p, "et_diagnostic_text", _P, c_void_p, c_size_t)
_device_open = _declare(c_int, "et_device_open", _P, c_char_p, c_int, c_int, _PP)
_device_close = _declare(None, "et_device_close", _PP)
_device_get_info = _declare(None, "et_device_get_info", _P, c_void_p)
_device_name = _declare(c_char_p, "et_device_name", _P)
_storage_wrap = _declare(c_int, "et_storage_wrap", _P, _P, c_void_p, c_size_t, _RELEASE, c_void_p,
                         _PP)
_storage_unref = _declare(None, "et_storage_unref", _P)
_tensor_new = _declare(c_int, "et_tensor_new", _P, _P, c_int, c_int, POINTER(c_int64), c_int,
                       c_char_p, _PP)
_tensor_view = _declare(c_int, "et_tensor_view", _P, _P, c_int64, c_void_p, c_char_p, _PP)
_tensor_free = _declare(None, "et_tensor_free", _PP)
_tensor_data = _declare(c_void_p, "et_tensor_data", _P)
_tensor_write = _declare(c_int, "et_tensor_write", _P, _P, c_void_p, c_size_t)
_tensor_read = _declare(c_int, "et_tensor_read", _P, _P, c_void_p, c_size_t)
_loader_next = _declare(c_int, "et_loader_next", _P, _P, _PP)
_loader_seek = _declare(c_int, "et_loader_seek", _P, _P, c_int64, c_int64)
_loader_release = _declare(None, "et_loader_release", _P, _P)
_session_open = _declare(c_int, "et_session_open", _P, c_char_p, c_void_p, c_void_p, _PP)
_session_close = _declare(None, "et_session_close", _PP)
_session_fit = _declare(c_int, "et_session_fit", _P)
_session_stop = _declare(None, "et_session_stop", _P)
_session_eval = _declare(c_int, "et_session_eval", _P)
_session_predict = _declare(c_int, "et_session_predict", _P, _P, _PP)
_session_state = _declare(c_void_p, "et_session_state", _P)
_session_device = _declare(c_void_p, "et_session_device", _P)
_session_directory = _declare(c_char_p, "et_session_directory", _P)
_session_outcome = _declare(c_char_p, "et_session_outcome", _P)
_session_recipe = _declare(c_char_p, "et_session_recipe", _P)
_session_loader = _declare(c_void_p, "et_session_loader", _P, c_int)
_load_model = _declare(c_int, "et_checkpoint_load_model", _P, c_char_p, _P, c_void_p, _PP)
_predictor_free = _declare(None, "et_predictor_free", _PP)
_predictor_fields = _declare(c_int, "et_predictor_fields", _P, c_int64, c_void_p, POINTER(c_int))
_predictor_describe_fields = _declare(c_int, "et_predictor_describe_fields", _P, c_void_p, c_int,
                                      c_void_p)
_predictor_run_fields = _declare(c_int, "et_predictor_run_fields", _P, c_void_p, c_int, c_void_p,
                                 c_int64)
_plugins_load = _declare(c_int, "et_plugins_load", _P, c_void_p, c_int, POINTER(c_char_p), c_void_p,
                         c_int, c_void_p, _PP)
_plugins_free = _declare(None, "et_plugins_free", _PP)
_plugins_registry = _declare(c_void_p, "et_plugins_registry", _P)
_state_number = _declare(c_bool, "et_state_number", _P, c_char_p, POINTER(c_double))
_state_number_name = _declare(c_char_p, "et_state_number_name", _P, c_int)
_events_open = _declare(c_int, "et_events_open", _P, c_char_p, _PP)
_events_close = _declare(None, "et_events_close", _PP)
_events_next = _declare(c_int, "et_events_next", _P, c_void_p, POINTER(c_bool))
_events_series = _declare(c_int, "et_events_series", _P, _PP, POINTER(c_int))
_events_fetch = _declare(c_int, "et_events_fetch", _P, c_char_p, c_int64, c_int64, c_int,
                         c_void_p, POINTER(c_int))


_DTYPES = ["none", "f32", "f64", "bf16", "f16", "i32", "i64", "u8"]
_CANCELED = 9
if ([_dtype_name(i).decode() for i in range(len(_DTYPES))] != _DTYPES
        or _status_name(_CANCELED) != b"canceled"):
    raise ImportError("this libetude.so is another version: its numbers mean something else")
_TO_NUMPY = {"f32": "f4", "f64": "f8", "f16": "f2", "i32": "i4", "i64": "i8", "u8": "u1"}
_FROM_NUMPY = {np.dtype(v): _DTYPES.index(k) for k, v in _TO_NUMPY.items()}


class Error(Exception):
    """What the library says went wrong: its sentence.

    status: a word for it, "not found"; code: the number that people are shown, as 1203, or 0;
    hint: what to try, or ""; diagnostics: all that is wrong with a recipe, a text each."""

    def __init__(self, message, status="invalid value", code=0, hint="", diagnostics=()):
        super().__init__(message)
        self.status, self.code, self.hint = status, code, hint
        self.diagnostics = list(diagnostics)


# ---- contexts: one thread each ----


class _Job:
    def __init__(self, f):
        self.f, self.done = f, threading.Event()
        self.value = self.error = None

    def run(self):
        """Once, though it may be in the queue twice."""
        f, self.f = self.f, None
        if f is None:
            return
        try:
            self.value = f()
        except BaseException as e:  # it is raised where the answer is waited for
            self.error = e
        del f
        self.done.set()


def _serve(jobs, cx):
    """A context's thread: does JOBS until there are no more, then frees it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while True:
        job = jobs.get()
        if job is None:
            break
        job.run() if isinstance(job, _Job) else job()
        del job
    _ctx_free(byref(cx))


class Context:
    """The library's state, and the thread that it is used on. Most programs need no other than
    the one that is there when none is given."""

    def __init__(self):
        self._cx = c_void_p()
        if _ctx_new(byref(self._cx)):
            raise MemoryError("no context")
        self._jobs = queue.SimpleQueue()
        # The thread must not hold this object, whose end is the thread's.
        self._thread = threading.Thread(target=_serve, args=(self._jobs, self._cx), name="etude",
                                        daemon=True)
        self._thread.start()

    def __del__(self):
        jobs = getattr(self, "_jobs", None)
        if jobs is not None:
            jobs.put(None)

    def call(self, f, interrupted=None):
        """What F() gives, on the context's thread. A KeyboardInterrupt meanwhile calls
        INTERRUPTED, and is raised when F has ended."""
        if threading.current_thread() is self._thread:
            return f()
        job, queued, again = _Job(f), False, None
        while True:
            try:  # also around put: F may have begun when an interrupt comes out of it
                if not queued:
                    self._jobs.put(job)
                    queued = True
                job.done.wait()
                break
            except KeyboardInterrupt as e:
                again = e
                if interrupted:
                    interrupted()
        if job.error is not None:
            raise job.error
        if again is not None:
            raise again
        return job.value

    def later(self, f):
        """F() on the context's thread, some time; safe where an object is being deleted."""
        self._jobs.put(f)

    def check(self, status, diagnostics=()):
        """Raises what stands in the context unless STATUS is 0. On its thread."""
        if status == 0:
            return
        e = _error_get(self._cx)
        error = Error(_error.get(e, "message").decode(errors="replace")
                      or _status_name(status).decode(),
                      _status_name(status).decode(), _error.get(e, "code"),
                      _error.get(e, "hint").decode(errors="replace"), diagnostics)
        _error_clear(self._cx)
        raise error


_default = None
_default_lock = threading.Lock()


def _context(cx):
    global _default
    with _default_lock:
        if cx is None and _default is None:
            _default = Context()
        return cx or _default


class _Held:
    """A pointer of the library's, how many here hold it, and what must not end before it.
    Python deletes what refers to each other in any order, so it is counted."""

    lock = threading.Lock()  # never taken where an object is being deleted

    def __init__(self, pointer, free, keeps):
        self.pointer, self.free, self.objects, self.count = pointer, free, keeps, 1
        self.keeps = [k._held for k in keeps if hasattr(k, "_held")]
        with _Held.lock:
            for k in self.keeps:
                k.count += 1

    def release(self):
        """On the context's thread."""
        with _Held.lock:
            self.count -= 1
            ends = self.count == 0
        if ends:
            self.free(byref(self.pointer))
            self.objects = None
            for k in self.keeps:
                k.release()


class _Owned:
    """A pointer of the library's, which FREE ends, on its context's thread, when nothing here
    refers to it any more. KEEPS: what must not end before it."""

    def __init__(self, cx, pointer, free, keeps=()):
        self.cx, self.pointer, self._held = cx, pointer, _Held(pointer, free, keeps)

    def __del__(self):
        self.cx.later(self._held.release)


# ---- devices and tensors ----


def _open_device(cx, name):
    def make():
        dev = c_void_p()
        cx.check(_device_open(cx._cx, name.encode(), 0, 0, byref(dev)))
        return dev
    return _Owned(cx, cx.call(make), _device_close)


_devices = {}


def _device(cx, name):
    """The device NAME of CX, opened once for all tensors of it."""
    cx = _context(cx)
    key = id(cx), name
    if key not in _devices or _devices[key].cx is not cx:
        _devices[key] = _open_device(cx, name)
    return _devices[key]


# Memory of others that the library uses, by a number, until it lets go of it.
_lent = {}
_lent_lock = threading.Lock()
_next_lent = 0


def _lend(owner):
    global _next_lent
    with _lent_lock:
        _next_lent += 1
        _lent[_next_lent] = owner
        return _next_lent


@_RELEASE
def _take_back(number):
    owner = _lent.pop(number)
    if callable(owner):
        owner()


class Tensor:
    """An array on a device. On a device that computes in the host's memory NumPy and others
    use it where it is: numpy(), np.asarray(t), np.from_dlpack(t)."""

    def __init__(self, owned, device):
        self._owned, self._device_owned = owned, device
        desc = owned.pointer.value + _tensor.place["desc"][0]
        n = _desc.get(desc, "ndim")
        self.dtype = _DTYPES[_desc.get(desc, "dtype")]
        self.shape = tuple(_desc.at(desc, "shape")[:n])
        self._stride = tuple(_desc.at(desc, "stride")[:n])

    def __repr__(self):
        return "etude.Tensor(%s%s, device='%s')" % (self.dtype, list(self.shape), self.device)

    @property
    def device(self):
        return _device_name(self._device_owned.pointer).decode()

    def _shares(self):
        """Where the elements are, if the host may read them there."""
        info = _device_info.new()
        _device_get_info(self._device_owned.pointer, info)
        if not _device_info.get(ctypes.addressof(info), "host_memory"):
            return None
        return _tensor_data(self._owned.pointer)

    @property
    def __array_interface__(self):
        if self.dtype not in _TO_NUMPY:
            raise AttributeError("NumPy has no %s" % self.dtype)
        data = self._shares()
        if data is None:
            raise AttributeError("device %s has memory of its own: use numpy()" % self.device)
        dtype = np.dtype(_TO_NUMPY[self.dtype])
        return {"version": 3, "shape": self.shape, "typestr": dtype.str, "data": (data, False),
                "strides": tuple(s * dtype.itemsize for s in self._stride)}

    def numpy(self, copy=False):
        """As an array: the tensor's own memory, or a copy where that is another device's, or
        where one is asked for."""
        if self.dtype not in _TO_NUMPY:
            raise Error("NumPy has no %s" % self.dtype, "dtype mismatch")
        if not copy and self._shares() is not None:
            return np.asarray(self)
        out = np.empty(self.shape, _TO_NUMPY[self.dtype])
        cx = self._owned.cx
        cx.call(lambda: cx.check(_tensor_read(cx._cx, self._owned.pointer, out.ctypes.data,
                                              out.nbytes)))
        return out

    def __dlpack_device__(self):
        return 1, 0  # a processor

    def __dlpack__(self, stream=None):
        data = self._shares()
        if data is None or stream is not None:
            raise BufferError("device %s has memory of its own" % self.device)
        return _to_capsule(self, data)


def tensor(array, device="cpu", context=None, copy=False):
    """A tensor of ARRAY: in its memory where DEVICE computes in the host's, the array lies in
    memory row by row and COPY is not asked for; else a copy. The array, or what it is a view
    of, is kept until the tensor is gone."""
    array = _admit(np.asarray(array))
    return _make_tensor(array, _device(context, device), copy)


def _admit(array):
    if array.dtype not in _FROM_NUMPY:
        raise Error("there are no tensors of NumPy's %s" % array.dtype, "dtype mismatch")
    if array.ndim > _MAX_DIMS:
        raise Error("a tensor has at most %d axes, not %d" % (_MAX_DIMS, array.ndim),
                    "shape mismatch")
    return array


def _make_tensor(array, dev, copy=False):
    shares = not copy and array.flags.c_contiguous and array.flags.writeable and array.flags.aligned
    cx = dev.cx
    dtype = _FROM_NUMPY[array.dtype]
    stride = tuple(s // array.itemsize for s in array.strides)
    info = _device_info.new()
    _device_get_info(dev.pointer, info)
    if shares and array.size and _device_info.get(ctypes.addressof(info), "host_memory"):
        return cx.call(lambda: _wrap(cx, dev, array.ctypes.data, array.nbytes, dtype, array.shape,
                                     stride, array))
    array = np.ascontiguousarray(array)

    def make():
        t, shape = c_void_p(), (c_int64 * _MAX_DIMS)(*array.shape)
        cx.check(_tensor_new(cx._cx, dev.pointer, dtype, array.ndim, shape, 0, None, byref(t)))
        owned = _Owned(cx, t, _tensor_free, (dev,))
        cx.check(_tensor_write(cx._cx, t, array.ctypes.data, array.nbytes))
        return Tensor(owned, dev)
    return cx.call(make)


def _wrap(cx, dev, data, nbytes, dtype, shape, stride, owner):
    """A tensor in memory of others; OWNER is kept, and called where it can be, when the library
    lets go of it."""
    storage, t, d = c_void_p(), c_void_p(), _desc.new()
    at = ctypes.addressof(d)
    _desc.set(at, "dtype", dtype)
    _desc.set(at, "ndim", len(shape))
    for i, (n, s) in enumerate(zip(shape, stride)):
        _desc.at(at, "shape")[i] = n
        _desc.at(at, "stride")[i] = s
    number = _lend(owner)
    status = _storage_wrap(cx._cx, dev.pointer, data, nbytes, _take_back, number, byref(storage))
    if status:
        _lent.pop(number)
        cx.check(status)
    status = _tensor_view(cx._cx, storage, 0, d, None, byref(t))
    _storage_unref(storage)
    cx.check(status)
    return Tensor(_Owned(cx, t, _tensor_free, (dev,)), dev)


# ---- DLPack, version 0 ----


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int), ("device_id", c_int), ("ndim", c_int),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class _DLManaged(ctypes.Structure):
    _fields_ = [("tensor", _DLTensor), ("manager", c_void_p), ("deleter", c_void_p)]


_DL_CODES = {"f32": (2, 32), "f64": (2, 64), "f16": (2, 16), "bf16": (4, 16), "i32": (0, 32),
             "i64": (0, 64), "u8": (1, 8)}
_capsule_new = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, c_char_p, c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi))
_capsule_valid = ctypes.PYFUNCTYPE(c_int, ctypes.py_object, c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi))
_capsule_get = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))
_capsule_rename = ctypes.PYFUNCTYPE(c_int, ctypes.py_object, c_char_p)(
    ("PyCapsule_SetName", ctypes.pythonapi))
# The end of a capsule that nobody has taken: it is not an object any more, but its address.
_dying_valid = ctypes.PYFUNCTYPE(c_int, c_void_p, c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi))
_dying_get = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))
_FRESH, _USED = b"dltensor", b"used_dltensor"  # kept here: capsules borrow their names


@_RELEASE
def _dl_delete(managed):
    _lent.pop(managed, None)


@ctypes.PYFUNCTYPE(None, c_void_p)
def _capsule_end(capsule):
    if _dying_valid(capsule, _FRESH):
        _dl_delete(_dying_get(capsule, _FRESH))


def _to_capsule(t, data):
    n = len(t.shape)
    managed, shape, strides = _DLManaged(), (c_int64 * n)(*t.shape), (c_int64 * n)(*t._stride)
    code, bits = _DL_CODES[t.dtype]
    managed.tensor = _DLTensor(data, 1, 0, n, code, bits, 1, shape, strides, 0)
    managed.deleter = ctypes.cast(_dl_delete, c_void_p)
    address = ctypes.addressof(managed)
    _lent[address] = managed, shape, strides, t
    return _capsule_new(address, _FRESH, ctypes.cast(_capsule_end, c_void_p))


def from_dlpack(x, device="cpu", context=None):
    """A tensor in the memory of X, whose __dlpack__ is asked for it."""
    if x.__dlpack_device__()[0] != 1:
        raise Error("an array of another device than a processor", "not supported")
    capsule = x.__dlpack__()
    if not _capsule_valid(capsule, _FRESH):
        raise Error("__dlpack__ gave no capsule that is unused")
    address = _capsule_get(capsule, _FRESH)
    managed = _DLManaged.from_address(address)
    m = managed.tensor
    dtype = [k for k, v in _DL_CODES.items() if v == (m.code, m.bits)]
    if not dtype or m.lanes != 1:
        raise Error("there are no tensors of DLPack's type (%d, %d)" % (m.code, m.bits),
                    "dtype mismatch")
    if m.ndim > _MAX_DIMS:
        raise Error("a tensor has at most %d axes, not %d" % (_MAX_DIMS, m.ndim), "shape mismatch")
    shape = tuple(m.shape[:m.ndim])
    rows = [1]
    for n in reversed(shape[1:]):
        rows.insert(0, rows[0] * n)
    stride = tuple(m.strides[:m.ndim]) if m.strides else tuple(rows[:m.ndim])
    if any(s < 0 for s in stride) or 0 in shape:
        raise Error("an array of a shape or order that tensors have not", "shape mismatch")
    last = sum((n - 1) * s for n, s in zip(shape, stride))
    dev = _device(context, device)

    def done():
        if managed.deleter:
            _RELEASE(managed.deleter)(address)

    t = dev.cx.call(lambda: _wrap(dev.cx, dev, m.data + m.byte_offset, (last + 1) * m.bits // 8,
                                  _DTYPES.index(dtype[0]), shape, stride, done))
    _capsule_rename(capsule, _USED)
    return t


# ---- sessions ----


class State:
    """Where a run is, for the call that is given it: state.epoch, state.loss, state.lr, and
    state["metrics/train/Accuracy"]. Nothing can be changed through it."""

    def __init__(self, pointer, event):
        object.__setattr__(self, "_pointer", pointer)
        object.__setattr__(self, "event", event)

    def __setattr__(self, name, value):
        raise AttributeError("a state is only read")

    def _at(self):
        if self._pointer is None:
            raise Error("a state is there for the call that was given it")
        return self._pointer

    def __getitem__(self, name):
        x = c_double()
        if not _state_number(self._at(), name.encode(), byref(x)):
            raise KeyError(name)
        whole = name in ("epoch", "batch", "sample", "token", "batch_in_epoch", "batch_size",
                         "grad_accum")
        return int(x.value) if whole else x.value

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError("a state has no %s" % name) from None

    def metrics(self):
        """What the record under way and the last evaluation have, by name."""
        names, i = [], 0
        while True:
            name = _state_number_name(self._at(), i)
            if not name:
                return {n: self[n] for n in names}
            names.append(name.decode())
            i += 1


class Callback:
    """To be derived from, or not: any object will do that has methods named on_ and an event
    (event.h): on_fit_start, on_batch_end, on_epoch_end, on_eval_end, on_fit_end. Each is given
    the State. They are called on the context's thread. What one raises ends the run, and is
    raised by fit()."""


class _Progress(Callback):
    def __init__(self, show):
        self.show = show

    def on_epoch_end(self, state):
        self.show("epoch %d, batch %d: loss %.4f" % (state.epoch, state.batch, state.loss))

    def on_eval_end(self, state):
        text = ", ".join("%s %.4f" % (k[len("metrics/"):], v) for k, v in state.metrics().items()
                         if k.startswith("metrics/") and not k.startswith("metrics/train"))
        self.show("epoch %d, batch %d: %s" % (state.epoch, state.batch, text))


def _hooks(callbacks):
    """The methods of CALLBACKS by the number of their event."""
    hooks = {}
    for c in callbacks:
        for name in dir(c):
            if not name.startswith("on_") or not callable(getattr(c, name)):
                continue
            event = c_int()
            if _event_parse(None, name[3:].encode(), byref(event)):
                raise Error("there is no event %s: %s of %s" % (name[3:], name, type(c).__name__))
            hooks.setdefault(event.value, []).append(getattr(c, name))
    return hooks


class _Bridge:
    """Calls the hooks; the first exception ends the call that trains, which raises it."""

    def __init__(self, hooks):
        self.hooks, self.error = hooks, None
        self.fn = _FN(self.on_event)

    def on_event(self, data, event, pointer):
        state = State(pointer, _event_name(event).decode())
        try:
            for f in self.hooks.get(event, ()):
                f(state)
        except BaseException as e:
            self.error = e
            return _CANCELED
        finally:
            object.__setattr__(state, "_pointer", None)
        return 0


def _overrides(texts):
    """ "key=value" sets, "alg:cutmix(alpha=.5)" and "no-alg:ema" as --alg and --no-alg do,
    "unset:key" takes back."""
    kinds = {"unset": 1, "alg": 2, "no-alg": 3}
    memory, keep = _override.new(max(1, len(texts))), []
    for i, text in enumerate(texts):
        word, colon, rest = text.partition(":")
        kind = kinds.get(word, 0) if colon else 0
        keep.append((rest if kind else text).encode())
        at = ctypes.addressof(memory) + i * _override.size
        _override.set(at, "kind", kind)
        _override.set(at, "text", keep[-1])
    return memory, keep


def _entry_of(plugin):
    """(path, digest) of what PLUGINS has for a name: a path, or a path and a digest."""
    path, digest = (plugin, None) if isinstance(plugin, (str, os.PathLike)) else plugin
    path = os.path.abspath(os.fspath(path))
    if digest is None:
        try:
            with open(path, "rb") as f:
                digest = hashlib.sha256(f.read()).hexdigest()
        except OSError as e:
            raise Error("the plugin %s cannot be read: %s" % (path, e.strerror),
                        "not found") from None
    return os.fsencode(path), digest.encode()


class _Plugins:
    """Libraries that recipes may name, loaded where one does. Recipes, and what is made of
    them, keep this: the libraries are unmapped after all that is of them."""

    def __init__(self, cx, plugins):
        entries = [(k.encode(), *_entry_of(v)) for k, v in dict(plugins or {}).items()]
        allowed, sets = _plugin_entry.new(max(1, len(entries))), {}
        for i, entry in enumerate(entries):
            at = ctypes.addressof(allowed) + i * _plugin_entry.size
            for field, text in zip(("name", "path", "sha256"), entry):
                _plugin_entry.set(at, field, text)
        if entries:
            ctypes.CDLL(_lib._name, ctypes.RTLD_GLOBAL)  # plugins call what is in the library

        def load(data, names, places, n, errors, out):
            key = tuple(names[i] for i in range(n))
            if key not in sets:  # a run that goes on reads two recipes
                loaded = c_void_p()
                status = _plugins_load(cx._cx, allowed, len(entries), names, places, n, errors,
                                       byref(loaded))
                if status:
                    return status
                sets[key] = loaded
            out[0] = _plugins_registry(sets[key])
            return 0

        def free(nothing):
            for loaded in sets.values():
                _plugins_free(byref(loaded))
            sets.clear()

        self.cx, self.env, self._keep = cx, _recipe_env.new(), (entries, allowed, _LOAD(load))
        _recipe_env.set(self.pointer, "load_plugins",
                        ctypes.cast(self._keep[-1], c_void_p).value)
        self._held = _Held(c_void_p(), free, ())

    def __del__(self):
        if hasattr(self, "_held"):
            self.cx.later(self._held.release)

    @property
    def pointer(self):
        """Of the struct et_recipe_env."""
        return ctypes.addressof(self.env)


class Session:
    """A recipe, made: trained by fit(), evaluated by eval(), asked by predict().

    path: a recipe, or a run or one of its checkpoints (its model has those weights then).
    overrides: "optimizer.lr=0.1", "alg:ema", "no-alg:ema", "unset:key", in order.
    device, threads: what computes; None and 0: as the recipe says, all cores.
    directory: of the run that fit makes; None: runs/ and the time; False: it leaves nothing.
    train, eval: False: do without these data.
    plugins: libraries that the recipe may name, {name: path}, or {name: (path, sha256)} where
    the file's digest is to be that one.
    callbacks: see Callback. progress: True prints a line for each epoch and evaluation; a
    function is given it."""

    def __init__(self, path, *overrides, device=None, threads=0, directory=None, train=True,
                 eval=True, callbacks=(), progress=None, plugins=None, context=None):
        callbacks = list(callbacks)
        if progress:
            callbacks.append(_Progress(print if progress is True else progress))
        hooks = _hooks(callbacks)
        self._bridge = _Bridge(hooks)
        self._cx = cx = _context(context)
        memory, keep = _overrides(overrides)
        allowed = _Plugins(cx, plugins)
        options = _options.new()
        # (What the fields point to is here until the call is over.)
        values = {"overrides": ctypes.addressof(memory), "n_overrides": len(overrides),
                  "threads": threads, "device": device.encode() if device else None,
                  "directory": os.fsencode(directory) if directory else None,
                  "no_directory": directory is False, "no_train": not train, "no_eval": not eval,
                  "events": sum(1 << e for e in hooks),
                  "fn": ctypes.cast(self._bridge.fn, c_void_p).value, "env": allowed.pointer}
        for field, value in values.items():
            _options.set(ctypes.addressof(options), field, value)

        def make():
            session, errors = c_void_p(), _diagnostics.new()
            status = _session_open(cx._cx, os.fsencode(path), options, errors, byref(session))
            if status:
                _check_recipe(cx, status, errors)
            return session
        self._owned = _Owned(cx, cx.call(make), _session_close,
                             (self._bridge, keep, memory, allowed))
        self._directory = self._outcome = None

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.close()

    def close(self):
        """Ends it, when the last tensor on its device is gone too."""
        self._owned = None
        if threading.current_thread() is not self._cx._thread:
            self._cx.call(lambda: None)  # what was given back is

    def _pointer(self):
        if self._owned is None:
            raise Error("the session is closed")
        return self._owned.pointer

    def _call(self, f):
        pointer = self._pointer()

        def work():
            self._bridge.error = None
            status = f(pointer)
            if self._bridge.error is not None:
                error, self._bridge.error = self._bridge.error, None
                _error_clear(self._cx._cx)
                raise error
            self._cx.check(status)
        self._cx.call(work, lambda: _session_stop(pointer))

    def fit(self):
        """Trains to the end of the recipe's max_duration, once; returns self."""
        try:
            self._call(_session_fit)
        finally:
            if self._owned is not None:
                for name, f in (("_directory", _session_directory), ("_outcome", _session_outcome)):
                    text = f(self._pointer())
                    setattr(self, name, os.fsdecode(text) if text else None)
        return self

    def stop(self):
        """From a callback or another thread: the run ends after this batch, and is saved."""
        _session_stop(self._pointer())

    def eval(self):
        """Evaluates on the recipe's eval_data: the metrics by name."""
        self._call(_session_eval)
        return {k: v for k, v in self.metrics().items() if k.startswith("metrics/")}

    def metrics(self):
        """What the last batch and evaluation came to, by name."""
        state = self._cx.call(lambda: _session_state(self._pointer()))
        return self._cx.call(lambda: State(state, None).metrics()) if state else {}

    def predict(self, x):
        """The model's outputs at X, an array as its loader makes them: images [N,C,H,W] in
        float32, normalised; tokens [B,T] in int32. An array of its own."""
        x = np.asarray(x)
        if x.dtype.kind in "iub" and x.ndim != 2:
            raise Error("images are floats, normalised as batches() gives them; tokens are [B,T]",
                        "dtype mismatch")
        x = x.astype(np.int32 if x.dtype.kind in "iu" else np.float32, copy=False)
        cx, device = self._cx, _session_device(self._pointer())
        dev = _Borrowed(cx, device, self._owned)
        source = _make_tensor(_admit(x), dev)
        out = c_void_p()
        self._call(lambda s: _session_predict(s, source._owned.pointer, byref(out)))
        return Tensor(_Owned(cx, out, _tensor_free, (dev,)), dev).numpy(copy=True)

    def tensor(self, array, copy=False):
        """As etude.tensor, on the session's device."""
        device = _session_device(self._pointer())
        return _make_tensor(_admit(np.asarray(array)), _Borrowed(self._cx, device, self._owned),
                            copy)

    def batches(self, data="eval", index=0):
        """One epoch of the recipe's eval_data (INDEX: which), or of its "train" data before
        fit, in its order: (x, target) and what other fields there are, arrays of their
        own, which also have their fields' names: batch.target, batch.attention_mask."""
        which = {"train": -1, "eval": index}[data]
        cx, loader = self._cx, _session_loader(self._pointer(), which)
        if not loader:
            raise Error("the session has no %s_data" % data, "not found")
        cx.call(lambda: cx.check(_loader_seek(cx._cx, loader, 0, 0)))
        while True:
            self._pointer()
            got = cx.call(lambda: _next_batch(cx, loader))
            if got is None:
                return
            yield got

    @property
    def directory(self):
        """Of the run that fit made; None without."""
        return self._directory

    @property
    def outcome(self):
        """How fit ended: "finished", "preempted", "diverged", "failed"; None before."""
        return self._outcome

    @property
    def recipe(self):
        """The recipe that it came to, as YAML with the origin of each value."""
        return _session_recipe(self._pointer()).decode()


class _Borrowed:
    """A session's device; KEEPS: the session."""

    def __init__(self, cx, pointer, keeps):
        self.cx, self.pointer, self._held = cx, c_void_p(pointer), keeps._held


def _texts(errors):
    at = ctypes.addressof(errors)
    text = ctypes.create_string_buffer(2048)
    first = at + _diagnostics.place["v"][0]
    return [_diagnostic_text(first + i * _diagnostic.size, text, len(text)).decode(errors="replace")
            for i in range(_diagnostics.get(at, "n"))]


def _check_recipe(cx, status, errors):
    """Raises what is wrong with a recipe, all of it."""
    at = ctypes.addressof(errors)
    try:
        cx.check(status, _texts(errors))
    except Error as e:
        if e.diagnostics:
            e.code = _diagnostic.get(at + _diagnostics.place["v"][0], "code")
        raise


def _next_batch(cx, loader):
    batch = c_void_p()
    cx.check(_loader_next(cx._cx, loader, byref(batch)))
    if not batch:
        return None
    try:
        at, fields = batch.value, _batch.get(batch.value, "fields")
        n = _batch.get(at, "n_fields")
        first = at + _batch.place["field"][0]
        arrays = [_copy_out(first + i * _batch_field.size) for i in range(n)]
        names = [_field.get(fields + i * _field.size, "name").decode() for i in range(n)]
        return collections.namedtuple("Batch", names, rename=True)(*arrays)
    finally:
        _loader_release(loader, batch)


def _copy_out(field):
    address, d = _batch_field.get(field, "host"), field + _batch_field.place["desc"][0]
    if not address:
        raise Error("the data lie on the device alone", "not supported")
    n = _desc.get(d, "ndim")
    dtype = np.dtype(_TO_NUMPY[_DTYPES[_desc.get(d, "dtype")]])
    shape, stride = _desc.at(d, "shape")[:n], _desc.at(d, "stride")[:n]
    span = 1 + sum((k - 1) * s for k, s in zip(shape, stride))
    flat = np.ctypeslib.as_array((ctypes.c_uint8 * (span * dtype.itemsize)).from_address(address))
    view = np.lib.stride_tricks.as_strided(flat.view(dtype), shape,
                                           [s * dtype.itemsize for s in stride])
    return np.array(view, order="C")


def train(path, *overrides, **options):
    """Trains the recipe at PATH to its end, and gives the Run. Options as of Session."""
    with Session(path, *overrides, **options) as s:
        s.fit()
        return Run(s.directory) if s.directory else None


class Model:
    """The model of a run, from its newest checkpoint or the one that PATH names (RUN/step-...,
    RUN/LABEL), for raw samples: the run's recipe says how they are prepared. Its data need not
    be there.

    device: what computes; None: as the recipe says. plugins: as a Session's."""

    def __init__(self, path, device=None, plugins=None, context=None):
        self._cx = cx = _context(context)
        dev = _device(cx, device) if device else None
        allowed = _Plugins(cx, plugins)

        def make():
            predictor = c_void_p()
            cx.check(_load_model(cx._cx, os.fsencode(path), dev.pointer if dev else None,
                                 allowed.pointer, byref(predictor)))
            return predictor
        self._owned = _Owned(cx, cx.call(make), _predictor_free, (dev, allowed))

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.close()

    def close(self):
        self._owned = None

    def _pointer(self):
        if self._owned is None:
            raise Error("the model is closed")
        return self._owned.pointer

    def _fields(self):
        """Of one sample: (dtype, shape) by name; an axis that may differ is the longest."""
        pointer, found, n = self._pointer(), _raw_field.new(_MAX_FIELDS), c_int()
        self._cx.call(lambda: self._cx.check(_predictor_fields(pointer, 1, found, byref(n))))
        each = [ctypes.addressof(found) + i * _raw_field.size for i in range(n.value)]
        return {_raw_field.get(at, "name").decode(): _read_desc(at + _raw_field.place["desc"][0], 1)
                for at in each}

    @property
    def fields(self):
        """What a sample may have: {name: (dtype, shape)}, the first first, which must be there.
        The first axis of tokens may be shorter than it is here."""
        return self._fields()

    @property
    def sample(self):
        """The shape of one sample: (H, W, C) bytes of an image, or (T,) tokens."""
        return next(iter(self._fields().values()))[1]

    def predict(self, samples=None, **fields):
        """The model's outputs for SAMPLES, an array of their own: images as bytes [N,H,W,C]
        ([N,H,W] where there is one channel), tokens [N,T], numbers. Samples of more than one
        array are given by name, predict(tokens=a, attention_mask=b), or in a mapping."""
        known = self._fields()
        if isinstance(samples, collections.abc.Mapping):
            fields = {**samples, **fields}
        elif samples is not None:
            fields = {next(iter(known)): samples, **fields}
        arrays = {k: _as_field(k, np.asarray(v), *known.get(k, (None, ()))) for k, v in
                  fields.items()}
        raw, names = _raw_field.new(max(1, len(arrays))), [k.encode() for k in arrays]
        for i, a in enumerate(arrays.values()):
            at = ctypes.addressof(raw) + i * _raw_field.size
            _raw_field.set(at, "name", names[i])
            _raw_field.set(at, "data", a.ctypes.data)
            _write_desc(at + _raw_field.place["desc"][0], a)
        cx, pointer, n, answers = self._cx, self._pointer(), len(arrays), _desc.new()
        cx.call(lambda: cx.check(_predictor_describe_fields(pointer, raw, n, answers)))
        out = np.empty(_read_desc(ctypes.addressof(answers))[1], np.float32)
        cx.call(lambda: cx.check(_predictor_run_fields(pointer, raw, n, out.ctypes.data,
                                                       out.size)))
        return out


def _read_desc(d, first=0):
    """(dtype, shape) of a struct et_desc, from its axis FIRST on."""
    return (np.dtype(_TO_NUMPY[_DTYPES[_desc.get(d, "dtype")]]),
            tuple(_desc.at(d, "shape")[first:_desc.get(d, "ndim")]))


def _write_desc(d, array):
    """Makes a struct et_desc of a row-major ARRAY."""
    _desc.set(d, "dtype", _FROM_NUMPY[array.dtype])
    _desc.set(d, "ndim", array.ndim)
    for i, n in enumerate(array.shape):
        _desc.at(d, "shape")[i] = n
        _desc.at(d, "stride")[i] = array.strides[i] // array.itemsize


def _as_field(name, array, dtype, shape):
    """ARRAY row-major, as the model's DTYPE where that has the same values; what does not fit
    then is the library's to say."""
    if array.ndim > _MAX_DIMS or array.dtype not in _FROM_NUMPY and array.dtype.kind not in "iubf":
        raise Error("%s is no array of numbers of at most %d axes: %s%s"
                    % (name, _MAX_DIMS, array.dtype, array.shape), "dtype mismatch")
    if array.dtype.kind == "b":
        array = array.astype(np.uint8)
    if array.shape[1:] == shape[:-1] and len(shape) == 3 and shape[2:] == (1,):
        array = array[..., None]
    if dtype is not None and dtype.kind == "f" and array.dtype.kind in "iuf":
        array = array.astype(dtype, copy=False)
    elif dtype is not None and dtype.kind in "iu" and array.dtype.kind in "iu" and len(shape) < 3:
        limits = np.iinfo(dtype)
        if array.size and (array.min() < limits.min or array.max() > limits.max):
            raise Error("%s has numbers that are no %s" % (name, dtype), "dtype mismatch")
        array = array.astype(dtype, copy=False)
    if array.dtype not in _FROM_NUMPY:
        raise Error("%s is %s%s" % (name, array.dtype, array.shape), "dtype mismatch")
    return np.ascontiguousarray(array)


def load(path, device=None, plugins=None, context=None):
    """The Model of a run or of one of its checkpoints."""
    return Model(path, device, plugins, context)


# ---- runs ----


class Run:
    """What a run has left in its directory: run.facts, run.names(), run["loss/train/total"],
    run.records(). A run that goes on is read as far as it is."""

    def __init__(self, directory, context=None):
        self.directory = os.fspath(directory)
        cx = _context(context)

        def make():
            events = c_void_p()
            path = os.path.join(os.fsencode(self.directory), b"events.log")
            cx.check(_events_open(cx._cx, path, byref(events)))
            return events
        self._owned = _Owned(cx, cx.call(make), _events_close)

    def __repr__(self):
        return "etude.Run(%r)" % self.directory

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self._owned = None

    def _read(self, f):
        if self._owned is None:
            raise Error("the run is closed")
        owned = self._owned
        return owned.cx.call(lambda: f(owned.cx, owned.pointer))

    @property
    def facts(self):
        """What run.json holds: name, state, recipe, times."""
        with open(os.path.join(self.directory, "run.json"), encoding="utf-8") as f:
            return json.load(f)

    def _sizes(self):
        def read(cx, events):
            found, n = c_void_p(), c_int()
            cx.check(_events_series(events, byref(found), byref(n)))
            each = range(found.value or 0, (found.value or 0) + n.value * _series.size,
                         _series.size)
            return {_series.get(at, "name").decode():
                    _series.get(at, "all__n") + _series.get(at, "all__bad") for at in each}
        return self._read(read)

    def names(self):
        """The names of its series."""
        return sorted(self._sizes())

    def __contains__(self, name):
        return name in self._sizes()

    def __getitem__(self, name):
        return self.series(name)

    def series(self, name, first=0, last=None, most=None):
        """The values of NAME from batch FIRST to LAST, in an array with the fields ba (finished
        batches), t (seconds since 1970) and value. MOST: at most so many points, the least and
        greatest of each stretch among them."""
        sizes = self._sizes()
        if name not in sizes:
            raise KeyError(name)
        most = max(2, most if most is not None else sizes[name] + 1)
        points = np.zeros(most, np.dtype({
            "names": ["ba", "t", "value"], "formats": ["i8", "f8", "f8"],
            "offsets": [_point.place[f][0] for f in ("ba", "t", "value")],
            "itemsize": _point.size}))

        def read(cx, events):
            n = c_int()
            cx.check(_events_fetch(events, name.encode(), first,
                                   2 ** 62 if last is None else last, most, points.ctypes.data,
                                   byref(n)))
            return points[:n.value]
        return self._read(read)

    def records(self, kind=None):
        """All its records in order, a dictionary each; KIND: those of one, as "eval"."""
        with Run(self.directory, self._owned.cx) as again:
            kinds = {}
            while True:
                got = again._read(lambda cx, events: _next_record(cx, events, kinds))
                if got is None:
                    return
                if kind is None or got["kind"] == kind:
                    yield got


def _next_record(cx, events, kinds):
    record, got = _record.new(), c_bool()
    cx.check(_events_next(events, record, byref(got)))
    if not got:
        return None
    at = ctypes.addressof(record)
    entry, n = _record.get(at, "entry"), _record.get(at, "n")
    text = _record.get(at, "text")
    number = _record.get(at, "kind")
    if number not in kinds:
        kinds[number] = _record_name(number).decode()
    result = {f: _record.get(at, f) for f in ("t", "seq", "ep", "ba", "sp")}
    result.update(kind=kinds[number], text=text.decode(errors="replace") if text else None)
    result["values"] = {_entry.get(entry + i * _entry.size, "name").decode():
                        _entry.get(entry + i * _entry.size, "value") for i in range(n)}
    return result


def runs(folder="runs"):
    """The runs in FOLDER, in the order of their names."""
    found = (os.path.join(folder, name) for name in sorted(os.listdir(folder)))
    return [Run(d) for d in found if os.path.exists(os.path.join(d, "events.log"))]
