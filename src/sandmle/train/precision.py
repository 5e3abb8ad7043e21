"""Which precision a model is computed in."""


def in_bfloat16(precision: str, on_cpu: bool) -> bool:
    """Return whether to compute in bfloat16; `auto` does where the hardware multiplies it natively.

    That is on CUDA, and on CPUs with AVX512-BF16: there it is two to five times as fast as float32,
    elsewhere thirty times slower (measured on two machines).
    """
    import torch

    if precision == "auto":
        return not on_cpu or bool(torch.cpu._is_avx512_bf16_supported())
    return precision == "bfloat16"
