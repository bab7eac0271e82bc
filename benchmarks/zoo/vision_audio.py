"""Vision and audio models from `transformers`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from zoo.entry import Built, Entry, calls, token_ids
from zoo.text import SMALL, create

PATCHES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "image_size": 16,
    "patch_size": 4,
}
WAVE: dict[str, Any] = {
    **{k: v for k, v in SMALL.items() if k != "max_position_embeddings"},
    "conv_dim": (16, 16),
    "conv_kernel": (8, 3),
    "conv_stride": (4, 2),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 2,
    "mask_time_prob": 0.0,
    "layerdrop": 0.0,
}
WHISPER: dict[str, Any] = {
    "vocab_size": 99,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 37,
    "decoder_ffn_dim": 37,
    "num_mel_bins": 8,
    "max_source_positions": 10,
    "max_target_positions": 20,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}


def entry(
    name: str,
    family: str,
    model: str,
    config: str,
    inputs: Callable[[], dict[str, Any]],
    train: bool = True,
    **options: Any,
) -> Entry:
    def make() -> Built:
        return calls(create(model, config, options), *[inputs()] * 2)

    return Entry(name, family, make, train)


def image(size: int = 16) -> Callable[[], dict[str, Any]]:
    return lambda: {"pixel_values": torch.randn(2, 3, size, size)}


def sound() -> dict[str, Any]:
    return {"input_values": torch.randn(2, 400)}


def speech() -> dict[str, Any]:
    return {
        "input_features": torch.randn(2, 8, 20),
        "decoder_input_ids": token_ids(2, 4),
        "use_cache": False,
    }


def picture_and_text() -> dict[str, Any]:
    return {"pixel_values": torch.randn(2, 3, 16, 16), "input_ids": token_ids(2, 6)}


ENTRIES = [
    entry("vit", "vision", "ViTModel", "ViTConfig", image(), **PATCHES),
    entry("deit", "vision", "DeiTForImageClassification", "DeiTConfig", image(), **PATCHES),
    entry("beit", "vision", "BeitModel", "BeitConfig", image(), **PATCHES),
    entry("dinov2", "vision", "Dinov2Model", "Dinov2Config", image(), **PATCHES),
    entry(
        "swin",
        "vision",
        "SwinModel",
        "SwinConfig",
        image(),
        image_size=16,
        patch_size=2,
        embed_dim=16,
        window_size=2,
        depths=[1, 1],
        num_heads=[2, 2],
        drop_path_rate=0.0,
    ),
    entry(
        "convnext",
        "vision",
        "ConvNextModel",
        "ConvNextConfig",
        image(32),
        hidden_sizes=[8, 16],
        depths=[1, 1],
        num_stages=2,
        image_size=32,
    ),
    entry(
        "segformer",
        "vision",
        "SegformerForSemanticSegmentation",
        "SegformerConfig",
        image(32),
        num_encoder_blocks=2,
        depths=[1, 1],
        sr_ratios=[2, 1],
        hidden_sizes=[8, 16],
        patch_sizes=[7, 3],
        strides=[4, 2],
        num_attention_heads=[1, 2],
        mlp_ratios=[2, 2],
        decoder_hidden_size=16,
        drop_path_rate=0.0,
    ),
    entry(
        "resnet",
        "vision",
        "ResNetForImageClassification",
        "ResNetConfig",
        image(32),
        embedding_size=8,
        hidden_sizes=[8, 16],
        depths=[1, 1],
    ),
    entry(
        "mobilenet_v2",
        "vision",
        "MobileNetV2Model",
        "MobileNetV2Config",
        image(32),
        image_size=32,
        depth_multiplier=0.25,
    ),
    entry(
        "clip",
        "vision and text",
        "CLIPModel",
        "CLIPConfig",
        picture_and_text,
        text_config={**SMALL, "bos_token_id": 0, "eos_token_id": 98},
        vision_config=PATCHES,
        projection_dim=16,
    ),
    entry("wav2vec2", "audio", "Wav2Vec2Model", "Wav2Vec2Config", sound, **WAVE),
    entry("hubert", "audio", "HubertModel", "HubertConfig", sound, **WAVE),
    entry(
        "whisper", "audio", "WhisperForConditionalGeneration", "WhisperConfig", speech, **WHISPER
    ),
]
