# SPDX-License-Identifier: Apache-2.0
"""What python/etude.py does, as TAP: check.py EXAMPLES PAGE PLUGIN. Run by python.t."""
import ctypes
import faulthandler
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import weakref

import numpy as np

import etude

count = failed = 0
PATIENCE = 60  # seconds: then it will never come
# What a shell starts in the background ignores Ctrl-C, and Python then leaves it so.
signal.signal(signal.SIGINT, signal.default_int_handler)


def ok(good, what):
    global count, failed
    count += 1
    failed += not good
    print("%sok %d - %s" % ("" if good else "not ", count, what), flush=True)
    return good


def same(got, want, what):
    if not ok(got == want, what):
        print("#   got    %r\n#   wanted %r" % (got, want), flush=True)


def raises(kind, f, what, holds=lambda e: True):
    try:
        f()
    except kind as e:
        if not ok(holds(e), what):
            print("#   got %r" % e)
        return
    ok(False, what)


faulthandler.dump_traceback_later(4 * PATIENCE, exit=True)  # what hangs is said, and fails
scratch = tempfile.mkdtemp(prefix="etude-python-")
recipe = os.path.join(scratch, "recipe.yaml")
with open(recipe, "w", encoding="utf-8") as f:
    f.write("""\
model: {name: mlp, hidden: 8, num_classes: 10, in_channels: 1}
train_data: {name: synthetic_images, type: separable, channels: 1, resolution: 4,
  num_samples: 64, num_unique: 64, batch_size: 16}
eval_data: {name: synthetic_images, type: separable, channels: 1, resolution: 4,
  num_samples: 32, num_unique: 32, batch_size: 16}
optimizer: {name: sgd, lr: 0.1}
seed: 3
max_duration: 2ep
""")
x = (np.arange(2 * 16, dtype=np.float32).reshape(2, 1, 4, 4) % 7) - 3


def session(name, *overrides, **options):
    """A session of the recipe, whose run is NAME; None: without."""
    where = os.path.join(scratch, name) if name else False
    return etude.Session(recipe, *overrides, device="ref", directory=where, **options)


# ---- tensors ----


def test_tensors():
    shares = alike = 0
    kinds = ("f4", "f8", "f2", "i4", "i8", "u1")
    for kind in kinds:
        a = np.arange(24).astype(kind).reshape(2, 3, 4)
        t = etude.tensor(a, device="ref")
        a[1, 2, 3] = 7
        shares += t.numpy().ctypes.data == a.ctypes.data and t.shape == (2, 3, 4)
        alike += np.array_equal(t.numpy(), a) and t.numpy().dtype == a.dtype
    same((shares, alike), (len(kinds), len(kinds)), "a tensor of an array is its memory, and back, "
         "in each dtype that NumPy has too")
    a = np.arange(6, dtype="f4").reshape(2, 3)
    t = etude.tensor(a.T, device="ref")
    ok(np.array_equal(t.numpy(), a.T) and not np.shares_memory(t.numpy(), a),
       "what does not lie row by row is copied")
    a.flags.writeable = False
    ok(not np.shares_memory(etude.tensor(a, device="ref").numpy(), a),
       "so is what may only be read")
    a = np.zeros(3, "f4")
    ok(not np.shares_memory(etude.tensor(a, device="ref", copy=True).numpy(), a),
       "and what a copy is asked of")
    raises(etude.Error, lambda: etude.tensor(np.zeros(3, "c8")), "a dtype that tensors have not is "
           "refused", lambda e: "complex64" in str(e) and e.status == "dtype mismatch")
    raises(etude.Error, lambda: etude.tensor(np.zeros([1] * 7, "f4")), "as are seven axes")
    raises(etude.Error, lambda: etude.tensor(a, device="nosuch"), "and a device that is not there",
           lambda e: e.status == "not found" and "nosuch" in str(e))


def settled():
    """What was let go of is gone: the context's thread has done all before this."""
    gc.collect()
    etude._context(None).call(lambda: None)


def test_lifetimes():
    a = np.arange(4, dtype="f4")
    end = weakref.ref(a)
    t = etude.tensor(a, device="ref")
    del a
    settled()
    ok(end() is not None and t.numpy().tolist() == [0, 1, 2, 3], "a tensor keeps the array that it "
       "is made of")
    view = t.numpy()
    del t
    settled()
    ok(end() is not None and view.tolist() == [0, 1, 2, 3], "an array of the tensor keeps both")
    view = None
    settled()
    ok(end() is None, "and with it they end")


def test_dlpack():
    a = np.arange(6, dtype="f4").reshape(2, 3)
    end = weakref.ref(a)
    t = etude.tensor(a, device="ref")
    b = np.from_dlpack(t)
    ok(b.ctypes.data == a.ctypes.data and b.tolist() == a.tolist(),
       "NumPy takes a tensor by DLPack where it lies")
    t.__dlpack__()  # nobody takes it
    del a, t
    settled()
    ok(end() is not None and b.tolist() == [[0, 1, 2], [3, 4, 5]], "and keeps it")
    b = None
    settled()
    ok(end() is None, "and lets go of it, as does a capsule that nobody has taken")
    a = np.arange(12, dtype="f8").reshape(3, 4)[:, 1:3]
    t = etude.from_dlpack(a, device="ref")
    a[2, 1] = 99
    ok(t.numpy().ctypes.data == a.ctypes.data and t.numpy().tolist() == a.tolist(),
       "a tensor is made by DLPack of what NumPy has, strides and all")
    end = weakref.ref(a.base)
    del a
    settled()
    ok(end() is not None, "and keeps it")
    del t
    settled()
    ok(end() is None, "until it is gone")
    same(len(etude._lent), 0, "nothing is lent any more")


# ---- training ----


class Watch(etude.Callback):
    def __init__(self):
        self.loss, self.at, self.thread, self.blocked = [], [], None, None

    def on_batch_end(self, state):
        self.loss.append(state.loss)
        self.at.append((state.batch, state.event))
        self.last = state
        self.thread = threading.current_thread()
        self.blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])

    def on_fit_end(self, state):
        self.metrics = state.metrics()


def test_fit():
    watch, lines = Watch(), []
    with session("run", "max_duration=3ep", callbacks=[watch], progress=lines.append) as s:
        same((s.outcome, s.directory), (None, None), "before it trains a session has no run")
        s.fit()
        same((s.outcome, s.directory), ("finished", os.path.join(scratch, "run")),
             "a recipe with an override is trained to its end")
        same(watch.at, [(i, "batch_end") for i in range(1, 13)], "a callback's method is called at "
             "each of its events")
        ok(watch.thread is not threading.current_thread() and signal.SIGINT in watch.blocked,
           "on the context's thread, which takes no signals")
        ok("metrics/eval/Accuracy" in watch.metrics, "it reads the metrics by name")
        same(len(lines), 6, "progress is a line for each epoch and evaluation")
        ok(lines[0].startswith("epoch 1, batch 4: loss ") and "eval/Accuracy 0." in lines[1],
           "such as " + lines[0])
        raises(etude.Error, lambda: watch.last.loss, "a state ends with its call")
        raises(AttributeError, lambda: setattr(watch.last, "lr", 1), "and is only read")
        raises(AttributeError, lambda: watch.last._pointer and watch.last.nothing or
               getattr(etude.State(s._call and etude._session_state(s._pointer()), "x"), "nothing"),
               "what it has not is no attribute")
        test_predict(s)
    raises(etude.Error, s.fit, "a closed session is closed")
    return watch


def test_predict(s):
    y = s.predict(x)
    ok(y.shape == (2, 10) and y.dtype == np.float32 and y.flags.owndata,
       "a model predicts an array of an array")
    ok(np.array_equal(s.predict(x.astype("f8")), y), "of any dtype")
    ok(np.array_equal(s.predict(np.asfortranarray(x)), y), "and any order in memory")
    raises(etude.Error, lambda: s.predict(x[:, :, :2]), "a wrong shape is refused with the "
           "library's sentence", lambda e: e.status == "shape mismatch" and len(str(e)) > 10)
    raises(etude.Error, lambda: s.predict(x.astype("u1")), "pixels that are still bytes are not "
           "taken for normalised ones", lambda e: "normalised" in str(e))
    ok(np.array_equal(s.predict(x), y), "after which it predicts as before")
    metrics = s.eval()
    same(sorted(metrics), ["metrics/eval/Accuracy", "metrics/eval/CrossEntropy"],
         "it is evaluated on the recipe's data")
    got = list(s.batches())
    same([(a.shape, b.shape) for a, b in got], [((16, 1, 4, 4), (16,))] * 2,
         "the batches of these data are arrays")
    right = sum(int((s.predict(a).argmax(1) == b).sum()) for a, b in got)
    same(right / 32, metrics["metrics/eval/Accuracy"], "whose predictions are as accurate as the "
         "library says")


def test_load():
    """The recipe's data have no transforms: bytes become numbers in [0, 1]."""
    run = os.path.join(scratch, "run")
    pixels = (np.arange(2 * 16).reshape(2, 4, 4, 1) * 7 % 256).astype(np.uint8)
    prepared = np.moveaxis(pixels, 3, 1).astype(np.float32) / 255
    with etude.Session(run, device="ref", train=False, eval=False, directory=False) as s:
        want = s.predict(prepared)
    with etude.load(run, device="ref") as m:
        same(m.sample, (4, 4, 1), "a model says what its samples are")
        y = m.predict(pixels)
        ok(np.allclose(y, want, rtol=1e-5, atol=1e-6) and y.shape == (2, 10) and y.flags.owndata,
           "the model of a run predicts for bytes what it does for what is made of them")
        ok(np.array_equal(m.predict(pixels[..., 0]), y), "an image of one channel may lack its axis")
        ok(np.array_equal(m.predict(np.asfortranarray(pixels)), y), "in any order in memory")
        raises(etude.Error, lambda: m.predict(pixels[:, :2]), "a wrong shape is refused, with the "
               "right one", lambda e: e.status == "shape mismatch" and str(e) ==
               "image is u8[2,2,4,1], and the model's data have u8[N,4,4,1]")
        raises(etude.Error, lambda: m.predict(pixels / 255), "numbers that are prepared already are "
               "not taken for raw ones", lambda e: e.status == "dtype mismatch" and
               str(e).startswith("image is f64[2,4,4,1], and "))
        same(m.fields, {"image": (np.dtype("u1"), (4, 4, 1))}, "its fields are known by name")
        ok(np.array_equal(m.predict(image=pixels), y) and
           np.array_equal(m.predict({"image": pixels}), y), "and given by name")
        raises(etude.Error, lambda: m.predict(imag=pixels), "a name that is near is suggested",
               lambda e: "no field 'imag' (did you mean 'image'?)" in str(e))
    raises(etude.Error, lambda: m.predict(pixels), "a model that is closed is closed")
    name = sorted(os.listdir(os.path.join(run, "checkpoints")))[-1]
    with etude.load(os.path.join(run, name), device="ref") as m:
        ok(np.array_equal(m.predict(pixels), y), "so does one of its checkpoints")
    raises(etude.Error, lambda: etude.load(os.path.join(scratch, "none")), "what is not there is "
           "said", lambda e: e.status == "not found")
    with session(None) as s:
        t = s.tensor(x)
    ok(np.array_equal(t.numpy(), x), "a tensor on a session's device outlives the session")


def test_plugins(path):
    """PATH: of examples/plugin_model.c, built."""
    named = os.path.join(scratch, "plugin.yaml")
    with open(recipe, encoding="utf-8") as f:
        text = f.read().split("\n", 1)[1]
    with open(named, "w", encoding="utf-8") as f:
        f.write("plugins: [all_conv]\nmodel: {name: all_conv, width: 4}\n" + text)
    plugins, where = {"all_conv": path}, os.path.join(scratch, "plugins", "run")
    raises(etude.Error, lambda: etude.Session(named, device="ref", directory=False),
           "a recipe's plugin that nobody allowed is refused",
           lambda e: e.code == 4001 and "all_conv" in str(e))
    raises(etude.Error, lambda: etude.Session(named, plugins={"all_conv": (path, "0" * 64)}),
           "as is a file of another digest", lambda e: e.code == 4001 and "SHA-256" in str(e))
    raises(etude.Error, lambda: etude.Session(named, plugins={"all_conv": path + ".none"}),
           "and one that is not there", lambda e: "all_conv.so.none" in str(e))
    run = etude.train(named, "max_duration=1ep", device="ref", directory=where, plugins=plugins)
    same(len(run["loss/train/total"]), 4, "a plugin's model is trained")
    with etude.Session(where, train=False, eval=False, device="ref", directory=False,
                       plugins=plugins) as s:
        want = s.predict(np.full((1, 1, 4, 4), 51 / 255, np.float32))
    with etude.load(where, device="ref", plugins=plugins) as m:
        y = m.predict(np.full((1, 4, 4, 1), 51, np.uint8))
        ok(np.allclose(y, want, rtol=1e-5, atol=1e-6) and y.shape == (1, 10),
           "its run predicts, as a session of it does")
    raises(etude.Error, lambda: etude.load(where, device="ref"),
           "and is refused without the plugin", lambda e: "all_conv" in str(e))


def test_ends():
    class Bad:
        def on_batch_end(self, state):
            if state.batch == 2:
                raise ValueError("two")

    with session("bad", callbacks=[Bad()]) as s:
        raises(ValueError, s.fit, "what a callback raises is raised by fit",
               lambda e: str(e) == "two")
        same(s.outcome, "failed", "the run has failed")
    same(etude.Run(os.path.join(scratch, "bad")).facts["state"], "failed", "as its directory says")

    class Stop:
        def on_batch_end(self, state):
            if state.batch == 5:
                self.session.stop()

    stop = Stop()
    with session(None, "max_duration=100000ba", callbacks=[stop]) as s:
        stop.session = s
        s.fit()
        same((s.outcome, s.directory), ("preempted", None), "a callback stops a run")

    class Interrupt:
        def on_batch_end(self, state):
            if state.batch == 3:
                os.kill(os.getpid(), signal.SIGINT)

    with session("interrupted", "max_duration=1000000ba", "eval_interval=0ep",
                 callbacks=[Interrupt()]) as s:
        raises(KeyboardInterrupt, s.fit, "Ctrl-C ends a run, and is raised when it has ended")
        same(s.outcome, "preempted", "and it is saved")
    ok(os.listdir(os.path.join(scratch, "interrupted", "checkpoints")), "in its directory")

    class Interrupts:
        """A queue; Ctrl-C comes just when the run has been put into it."""

        def __init__(self, jobs):
            self.jobs, self.left = jobs, 1

        def put(self, job):
            self.jobs.put(job)
            if self.left:
                self.left = 0
                raise KeyboardInterrupt

    with session("early", "max_duration=1000000ba", "eval_interval=0ep") as s:
        jobs, s._cx._jobs = s._cx._jobs, Interrupts(s._cx._jobs)
        try:
            raises(KeyboardInterrupt, s.fit, "so does one that comes as it begins")
        finally:
            s._cx._jobs = jobs
        same(s.outcome, "preempted", "which is saved, too")
    raises(etude.Error, lambda: session(None, callbacks=[type("T", (), {"on_batch_ends": print})]),
           "an event that is none is refused", lambda e: "batch_ends" in str(e))


def test_threads():
    told, asked = threading.Event(), []

    class Wait:
        def on_fit_start(self, state):
            asked.append(told.wait(PATIENCE))

    helper = threading.Timer(0.01, told.set)
    with session(None, callbacks=[Wait()]) as s:
        helper.start()
        s.fit()
    same(asked, [True], "other threads of Python go on while a run is trained")
    losses = {}

    def one(seed):
        watch = Watch()
        with session(None, "seed=%d" % seed, callbacks=[watch], context=etude.Context()) as s:
            s.fit()
        losses[seed] = watch.loss

    threads = [threading.Thread(target=one, args=(n,)) for n in (3, 4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(PATIENCE)
    watch = Watch()
    with session(None, callbacks=[watch]) as s:
        s.fit()
    ok(losses[3] == watch.loss and losses[4] != watch.loss,
       "two contexts train at once, each as one alone would")


def test_faults():
    def both():
        etude.Session(recipe, "optimizer.lrr=1", "seeed=2", device="ref")
    raises(etude.Error, both, "a recipe's faults are told, all of them",
           lambda e: e.code == 1205 and len(e.diagnostics) == 2 and "seeed" in e.diagnostics[1])
    with session(None, "alg:label_smoothing(smoothing=.2)", "scheduler.T_max=4ep",
                 "scheduler.name=cosine", "unset:seed") as s:
        ok("smoothing: 0.2" in s.recipe and "t_max: 4ep" in s.recipe, "overrides add algorithms, "
           "and know PyTorch's names")
        ok("seed: 3 " not in s.recipe, "and unset what the recipe sets")
    raises(ImportError, lambda: etude._Struct("et_desc", dtype=ctypes.c_int64),
           "a field of another size is refused by its name", lambda e: "dtype of struct et_desc has 4" in str(e))
    raises(ImportError, lambda: etude._Struct("et_desc", color=ctypes.c_int), "as is one that the "
           "library has not", lambda e: "no field color" in str(e))


# ---- runs ----


def test_runs(watch):
    with etude.Run(os.path.join(scratch, "run")) as run:
        test_run(run, watch)
    raises(etude.Error, run.names, "a run that is closed is closed")
    same([os.path.basename(r.directory) for r in etude.runs(scratch)],
         ["bad", "early", "interrupted", "run"], "the runs of a folder")
    raises(etude.Error, lambda: etude.Run(scratch), "a folder that holds none is refused",
           lambda e: e.status == "not found")
    run = etude.train(recipe, "max_duration=1ep", device="ref",
                      directory=os.path.join(scratch, "short"))
    same(len(run["loss/train/total"]), 4, "train() does all of it")


def test_run(run, watch):
    loss = run["loss/train/total"]
    same(loss["ba"].tolist(), list(range(1, 13)), "a metric of a run is an array along its batches")
    ok(np.allclose(loss["value"], watch.loss, rtol=1e-6), "of the values that callbacks saw")
    ok(np.all(np.diff(loss["t"]) >= 0), "with their times")
    same(run.series("loss/train/total", 3, 5)["ba"].tolist(), [3, 4, 5], "or of some batches")
    ok(len(run.series("loss/train/total", most=4)) <= 4, "or of so many points at most")
    ok("lr-SGD/group0" in run.names() and "lr-SGD/group0" in run and "nothing" not in run,
       "its names are listed")
    raises(KeyError, lambda: run["nothing"], "a name that it has not is a KeyError")
    records = list(run.records("batch"))
    same([r["ba"] for r in records], list(range(1, 13)), "its records are read in order")
    ok(abs(records[0]["values"]["loss/train/total"] - watch.loss[0]) < 1e-6, "with their numbers")
    same(run.facts["state"], "finished", "run.json is there, whatever was evaluated after the end")


def test_example(examples):
    out = subprocess.run([sys.executable, os.path.join(examples, "notebook.py")], cwd=scratch,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE)
    if not ok(out.returncode == 0, "examples/notebook.py runs"):
        print("# " + out.stdout.decode().replace("\n", "\n# "))


def test_page(path):
    with open(path, encoding="utf-8") as f:
        words = set(f.read().replace(",", " ").replace('"', " ").replace("[", " ").split())
    public = set(etude.__all__)
    for owner in (etude.Session, etude.Model, etude.Run, etude.Tensor, etude.State):
        public |= {name for name in vars(owner) if not name.startswith("_")}
    public |= set(etude.Session.__init__.__kwdefaults__)
    same(sorted(public - words), [], "etude-python(7) has all that is public")


test_tensors()
test_lifetimes()
test_dlpack()
watch = test_fit()
test_load()
if sys.argv[3]:
    test_plugins(sys.argv[3])
test_ends()
test_threads()
test_faults()
test_runs(watch)
test_example(sys.argv[1])
test_page(sys.argv[2])
settled()
same(len(etude._lent), 0, "at the end nothing is lent")
shutil.rmtree(scratch)
print("1..%d" % count)
sys.exit(failed > 0)
