# SPDX-License-Identifier: Apache-2.0
"""What an NVIDIA GPU says of itself during a window: clock, power, temperature, why it is
held back. Read only: nothing here sets anything.

From the driver's library (NVML), or by nvidia-smi where that cannot be loaded.
"""
import ctypes
import statistics
import subprocess
import threading

# nvml.h, NVML_CLOCKS_THROTTLE_REASON_*: those that make a window worth less.
REASONS = {0x4: "power cap", 0x8: "hardware slowdown", 0x20: "software thermal",
           0x40: "hardware thermal", 0x80: "hardware power brake"}
QUERY = "clocks.sm,power.draw,temperature.gpu,clocks_throttle_reasons.active"


class Nvml:
    def __init__(self, index=0, path="libnvidia-ml.so.1"):
        self.lib = ctypes.CDLL(path)
        self.device = ctypes.c_void_p()
        self.must("nvmlInit_v2")
        self.must("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index),
                  ctypes.byref(self.device))

    def must(self, function, *args):
        if status := getattr(self.lib, function)(*args):
            raise OSError(f"{function}: status {status}")

    def get(self, function, kind, *args):
        value = kind()
        self.must(function, self.device, *args, ctypes.byref(value))
        return value.value

    def text(self, function, *first):
        buffer = ctypes.create_string_buffer(96)
        self.must(function, *first, buffer, ctypes.c_uint(len(buffer)))
        return buffer.value.decode()

    def about(self):
        return {"gpu": self.text("nvmlDeviceGetName", self.device),
                "driver": self.text("nvmlSystemGetDriverVersion")}

    def read(self):
        """(SM clock in MHz, power in W, temperature in C, bits of REASONS)"""
        sm = ctypes.c_uint(1)  # NVML_CLOCK_SM
        core = ctypes.c_uint(0)  # NVML_TEMPERATURE_GPU
        return (self.get("nvmlDeviceGetClockInfo", ctypes.c_uint, sm),
                self.get("nvmlDeviceGetPowerUsage", ctypes.c_uint) / 1000,
                self.get("nvmlDeviceGetTemperature", ctypes.c_uint, core),
                self.get("nvmlDeviceGetCurrentClocksThrottleReasons", ctypes.c_ulonglong))


class Smi:
    def __init__(self, index=0):
        self.index = index
        self.read()

    def ask(self, query):
        line = subprocess.run(["nvidia-smi", f"--id={self.index}", f"--query-gpu={query}",
                               "--format=csv,noheader,nounits"],
                              capture_output=True, text=True, check=True).stdout
        return [word.strip() for word in line.split(",")]

    def about(self):
        return dict(zip(("gpu", "driver"), self.ask("name,driver_version")))

    def read(self):
        clock, power, heat, reasons = self.ask(QUERY)
        return float(clock), float(power), float(heat), int(reasons, 16)


def open_gpu(index=0):
    """Who answers for GPU INDEX; None: nobody does."""
    for kind in (Nvml, Smi):
        try:
            return kind(index)
        except (OSError, AttributeError, ValueError, subprocess.CalledProcessError):
            pass
    return None


class Watch:
    """with Watch(gpu) as w: ...; then w.summary(). Reads ten times a second."""

    def __init__(self, gpu, interval=0.1):
        self.gpu, self.interval = gpu, interval
        self.seen, self.over = [], threading.Event()

    def sample(self):
        while True:
            try:
                self.seen.append(self.gpu.read())
            except (OSError, ValueError, subprocess.CalledProcessError):
                pass
            if self.over.wait(self.interval):
                return

    def __enter__(self):
        if self.gpu:
            self.thread = threading.Thread(target=self.sample)
            self.thread.start()
        return self

    def __exit__(self, *_):
        if self.gpu:
            self.over.set()
            self.thread.join()

    def summary(self):
        """Medians, and every reason there ever was; {} where nobody answered."""
        if not self.seen:
            return {}
        clock, power, heat, reasons = zip(*self.seen)
        bits = 0
        for r in reasons:
            bits |= r
        return {"sm_mhz": statistics.median(clock), "watts": statistics.median(power),
                "celsius": max(heat), "samples": len(self.seen),
                "held_back_by": [text for bit, text in REASONS.items() if bits & bit]}
