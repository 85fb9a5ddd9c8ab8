"""PyTorch's own modules: what of them a stage reads on the host, and what is fixed when they are made."""

from __future__ import annotations

import torch

DISTRIBUTED = ("DistributedDataParallel", "FullyShardedDataParallel", "FSDPModule", "DataParallel")
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
# Of PyTorch's own layers: fixed when they are made, as their weights' shapes are.
STRUCTURE = {"in_channels", "out_channels", "in_features", "out_features", "num_features", "kernel_size", "stride", "dilation",
             "groups", "transposed", "output_padding", "padding_mode", "padding", "num_embeddings", "embedding_dim",
             "normalized_shape", "inplace", "call_super_init", "dump_patches"}
NN = torch.nn
CONTAINERS = (NN.Sequential, NN.ModuleList, NN.ModuleDict, NN.ParameterList, NN.ParameterDict)
INDIFFERENT = (NN.Sequential, NN.ModuleList, NN.ModuleDict, NN.Linear, NN.Identity, NN.Flatten, NN.ReLU, NN.GELU, NN.SiLU, NN.Tanh,
               NN.Sigmoid, NN.Softmax, NN.LayerNorm, NN.GroupNorm, NN.Embedding, NN.MaxPool2d, NN.AvgPool2d, NN.AdaptiveAvgPool2d,
               NN.Conv1d, NN.Conv2d, NN.Conv3d, NN.ConvTranspose1d, NN.ConvTranspose2d, NN.ConvTranspose3d)  # to training
FAST = (NN.TransformerEncoder, NN.TransformerEncoderLayer, NN.MultiheadAttention)  # in their forward pass, as long as that is on
