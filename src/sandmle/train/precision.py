"""Which precision a model is computed in."""


def in_bfloat16(precision: str, on_cpu: bool) -> bool:
    """Return whether to compute in bfloat16; `auto` does where the hardware multiplies it natively.

    That is on CUDA, and on CPUs with AVX512-BF16; on others it is many times slower than float32.
    """
    import torch

    if precision == "auto":
        # torch has no public name for it
        probe = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
        return not on_cpu or bool(probe())
    return precision == "bfloat16"
