"""Is there a GPU, and how fast is it? Multiplies matrices on the CPU and on the GPU.

    mkdir -p logs && sbatch gpu.sbatch

The speeds are in TFLOP/s: a million million multiplications and additions in a second. A language
model spends nearly all its time on products of matrices, so this number matters.
"""

import os
import statistics
import sys
import time

try:
    import torch
except ImportError:
    sys.exit(
        "This Python has no PyTorch. Switch the lab's environment on and try again: "
        "source ../00_setup/setup_env.sh"
    )

CPU_SIZE = 2048  # rows and columns: a product takes the CPU some tenths of a second
GPU_SIZE = 8192  # at most; large enough to keep every part of a big GPU busy


def why_no_gpu(cuda_version):
    """Say why PyTorch sees no GPU although Slurm allocated one.

    cuda_version is the CUDA that PyTorch was built for, such as "13.0", or None.
    """
    if cuda_version is None:
        return (
            "Slurm did allocate a GPU, but this PyTorch is built without CUDA. "
            "The environment needs the CUDA build: see TORCH_BUILD in 00_setup/course.env."
        )
    return (
        f"Slurm did allocate a GPU, but this PyTorch (built for CUDA {cuda_version}) cannot use "
        "it: the driver is too old or does not answer. The .err file may say more."
    )


def largest_size(free_bytes):
    """Return the size of the square matrices that fit into this much free GPU memory."""
    # Three matrices (two factors, one product) of 4-byte numbers; half of the memory stays free.
    fits = int((free_bytes / 2 / 3 / 4) ** 0.5)
    # Multiples of 256 suit the GPU: it computes in tiles.
    return min(GPU_SIZE, max(256, fits // 256 * 256))


def tflops(device, dtype, size):
    """Return the speed of a matrix product on this device, in TFLOP/s."""
    a = torch.randn(size, size, device=device, dtype=dtype)
    b = torch.randn(size, size, device=device, dtype=dtype)
    c = torch.empty(size, size, device=device, dtype=dtype)
    times = []
    for _ in range(15):
        start = time.perf_counter()
        torch.matmul(a, b, out=c)
        if device == "cuda":
            # A GPU works on its own: matmul only hands the order over. Wait for the result.
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    # The first rounds are for warming up: libraries load, the clock speeds up. The median of the
    # others is the fair one; a mean would be spoiled by a single disturbance.
    seconds = statistics.median(times[5:])
    # Each of the size * size results takes size multiplications and size additions.
    return 2 * size**3 / seconds / 1e12


def main():
    available = torch.cuda.is_available()
    print(f"CUDA available        : {available}")
    if not available:
        print("No GPU found. Did you ask for one with --gres=gpu:1 ?")
        if os.environ.get("SLURM_JOB_GPUS"):  # Slurm sets this in a job that has a GPU
            print(why_no_gpu(torch.version.cuda))
        return

    gpu = torch.cuda.get_device_properties(0)
    print(f"GPU 0                 : {gpu.name}, {gpu.total_memory / 2**30:.1f} GiB")

    # The CPUs of the job, not those of the whole machine.
    cpus = os.environ.get("SLURM_CPUS_PER_TASK", "")
    if cpus.isdecimal() and int(cpus) > 0:
        torch.set_num_threads(int(cpus))
    # Real 32-bit numbers. "high" would let the GPU round them to 19 bits (TF32) to be faster.
    torch.set_float32_matmul_precision("highest")

    size = largest_size(torch.cuda.mem_get_info()[0])
    speed = tflops("cpu", torch.float32, CPU_SIZE)
    print(f"CPU, 32-bit numbers   : {speed:8.2f} TFLOP/s   ({torch.get_num_threads()} threads)")
    speed = tflops("cuda", torch.float32, size)
    print(f"GPU, 32-bit numbers   : {speed:8.2f} TFLOP/s   (all 32 bits, no TF32)")
    speed = tflops("cuda", torch.float16, size)
    print(f"GPU, 16-bit numbers   : {speed:8.2f} TFLOP/s   (float16)")


if __name__ == "__main__":
    main()
