"""Models that nobody here wrote, in tiny configurations: each gives a training step for a batch and a length.

A model is built for sizes that differ from each other, or for sizes that are all 4, where a coincidence can show.
"""

from __future__ import annotations

import contextlib
import warnings

# Names of sizes in the configurations of transformers. What a configuration does not have is left out.
DIFFERENT = {"heads": 2, "head": 8, "hidden": 16, "inner": 24}
EQUAL = {"heads": 4, "head": 8, "hidden": 32, "inner": 64}

CAUSAL = """
    gpt2 gpt_neo gpt_neox gptj opt bloom llama mistral mixtral qwen2 qwen2_moe qwen3 gemma gemma2 gemma3_text phi phi3
    falcon mpt stablelm starcoder2 cohere olmo olmo2 persimmon codegen xglm mamba mamba2 granite biogpt glm nemotron
    rwkv openai-gpt ctrl
""".split()
MASKED = "bert roberta distilbert albert electra deberta deberta-v2 mpnet camembert xlm-roberta squeezebert convbert".split()
SEQ2SEQ = "t5 bart pegasus mbart blenderbot m2m_100 marian".split()
VISION = """
    resnet18 mobilenet_v2 mobilenet_v3_small shufflenet_v2_x0_5 squeezenet1_1 efficientnet_b0 regnet_y_400mf mnasnet0_5
    convnext_tiny vit_b_16 swin_t swin_v2_t densenet121 googlenet
""".split()
RL = "PPO A2C DQN SAC TD3 DDPG".split()


def tiny(model_type, sizes):
    """A configuration of a language model with few parameters."""
    from transformers import AutoConfig

    config = AutoConfig.for_model(model_type)
    heads, head, hidden, inner = (sizes[name] for name in ("heads", "head", "hidden", "inner"))
    wanted = {
        "vocab_size": 53, "hidden_size": hidden, "d_model": hidden, "n_embd": hidden, "embedding_size": hidden,
        "dim": hidden, "word_embed_proj_dim": hidden, "num_hidden_layers": 2, "n_layer": 2, "n_layers": 2,
        "num_layers": 2, "num_decoder_layers": 2, "encoder_layers": 2, "decoder_layers": 2, "num_attention_heads": heads,
        "n_head": heads, "n_heads": heads, "num_heads": heads, "encoder_attention_heads": heads,
        "decoder_attention_heads": heads, "attention_heads": heads, "num_key_value_heads": heads,
        "intermediate_size": inner, "n_inner": inner, "ffn_dim": inner, "d_ff": inner, "dff": inner, "hidden_dim": inner,
        "encoder_ffn_dim": inner, "decoder_ffn_dim": inner, "ffn_hidden_size": inner, "moe_intermediate_size": inner,
        "shared_expert_intermediate_size": inner, "head_dim": head, "d_kv": head, "query_pre_attn_scalar": head,
        "n_positions": 64, "n_ctx": 64, "max_position_embeddings": 64, "max_seq_len": 64, "num_experts": 4,
        "num_local_experts": 4, "num_experts_per_tok": 2, "rotary_dim": head, "sliding_window": 32, "state_size": 6,
        "time_step_rank": 3, "attention_hidden_size": hidden, "context_length": 64, "dropout": 0.1, "max_2d": None,
        "scale_attn_by_inverse_layer_idx": None,
    }  # fmt: skip
    for name, value in wanted.items():
        if value is not None and getattr(config, name, None) is not None:
            with contextlib.suppress(AttributeError):  # a property
                setattr(config, name, value)
    if model_type == "mamba2":
        config.expand, config.num_heads, config.head_dim, config.n_groups = 2, heads, 2 * hidden // heads, 1
    if model_type == "mamba":
        config.intermediate_size = 2 * hidden
    if model_type == "gpt_neo":
        config.attention_types, config.num_layers = [[["global", "local"], 1]], 2
        config.attention_layers = ["global", "local"]
    if model_type in ("convbert", "squeezebert"):
        config.num_groups = 1
    if getattr(config, "layer_types", None) is not None:
        with contextlib.suppress(AttributeError):
            config.layer_types = config.layer_types[:2]
    if model_type == "nemotron":
        config.num_key_value_heads, config.head_dim = heads, head
    if model_type == "marian":
        config.decoder_vocab_size = 53
    if model_type == "codegen":  # It always splits its heads four ways.
        config.n_head, config.n_embd, config.rotary_dim = 4, 4 * head, head
    for name in ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id", "forced_eos_token_id"):
        value = getattr(config, name, None)
        if isinstance(value, list):
            value = value[0]
        if value is not None and (value >= 53 or value < 0):
            setattr(config, name, 1)
    if getattr(config, "pad_token_id", None) is None:
        config.pad_token_id = 0
    if model_type in SEQ2SEQ and getattr(config, "decoder_start_token_id", None) is None:
        config.decoder_start_token_id = 0
    return config


def language_model(model_type, sizes):
    """A training step of a language model: forward, loss, backward, optimizer."""
    import torch
    import transformers

    makers = ((CAUSAL, "AutoModelForCausalLM"), (MASKED, "AutoModelForMaskedLM"), (SEQ2SEQ, "AutoModelForSeq2SeqLM"))
    maker = next(getattr(transformers, name) for names, name in makers if model_type in names)
    model = maker.from_config(tiny(model_type, sizes))
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def step(batch, length):
        ids = torch.randint(3, 53, (batch, length))
        mask = torch.ones_like(ids)
        mask[0, -1] = 0
        mask = mask if model_type not in ("ctrl", "openai-gpt", "rwkv") else torch.ones_like(ids)
        kept = {} if model_type in ("rwkv",) else {"attention_mask": mask}
        loss = model(input_ids=ids, labels=ids, **kept).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def vision_model(name, size):
    """A training step of a model of torchvision on pictures; `length` is not used."""
    import torch
    import torchvision

    own = {"googlenet": {"init_weights": False, "aux_logits": False}, "vit_b_16": {"image_size": size}}
    options = own.get(name, {})
    model = torchvision.models.get_model(name, weights=None, num_classes=5, **options)
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)

    def step(batch, length):
        images, labels = torch.randn(batch, 3, size, size), torch.randint(0, 5, (batch,))
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def reinforcement(name, batch):
    """A short training of an algorithm of stable-baselines3."""
    import stable_baselines3

    discrete = name in ("PPO", "A2C", "DQN")
    options = {"policy_kwargs": {"net_arch": [8, 8]}, "device": "cpu", "seed": 0}
    if name == "PPO":
        options |= {"n_steps": 4 * batch, "batch_size": batch, "n_epochs": 2}
    elif name == "A2C":
        options |= {"n_steps": batch}
    else:
        options |= {"batch_size": batch, "learning_starts": 20, "buffer_size": 200, "train_freq": 4}
    algorithm = getattr(stable_baselines3, name)("MlpPolicy", "CartPole-v1" if discrete else "Pendulum-v1", **options)
    return lambda: algorithm.learn(60)


def quiet():
    """Silences what the packages themselves warn of, and their progress."""
    import os

    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    os.environ["HF_HUB_OFFLINE"] = "1"
    warnings.filterwarnings("ignore")
