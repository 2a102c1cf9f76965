# SPDX-License-Identifier: Apache-2.0
"""Three norms of the same gradients: the exact one, PyTorch's, and this library's, with their errors.

Takes the bfloat16 gradients of a small network in PyTorch where they lie, and asks for the norm that clipping is about.
Needs PyTorch beside this package: pip install torch.
"""

import torch

import gradguard

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 10)).to(torch.bfloat16)
images, labels = torch.randn(128, 64, dtype=torch.bfloat16), torch.randint(10, (128,))
torch.nn.functional.cross_entropy(model(images).float(), labels).backward()

gradients = [parameter.grad for parameter in model.parameters()]  # CPU tensors are used where they lie: no copy
exact = gradguard.reference.exact_norm(gradients)  # an exact sum of squares, rounded once
norms = {
    "PyTorch, clip_grad_norm_": float(torch.nn.utils.get_total_norm(gradients)),
    "PyTorch, from float32": float(torch.nn.utils.get_total_norm([gradient.float() for gradient in gradients])),
    "gradguard": gradguard.gradient_stats(gradients).total_norm,
}
print(f"{'exact':<26} {exact:.17g}")
for name, norm in norms.items():
    ulp = gradguard.reference.ulp_error(norm, exact)
    print(f"{name:<26} {norm:.17g}   off by {abs(norm - exact) / exact:.2e}, {ulp:.3g} ulp")
print(f"{'bound for gradguard':<26} {gradguard.reference.norm_bound(gradients):.2e}")
