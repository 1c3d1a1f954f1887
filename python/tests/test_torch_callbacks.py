"""The guard as a callback of Lightning and of Hugging Face's Trainer, with the packages themselves."""

import sys
import warnings

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: cargo xtask test torch")

import simulcast
import simulcast.torch

pytestmark = pytest.mark.filterwarnings("ignore")


def depth():
    return torch.overrides._len_torch_function_stack()


@pytest.mark.parametrize("right", [True, False])
def test_lightning(right, tmp_path):
    lightning = pytest.importorskip("lightning", reason="Lightning is not installed: cargo xtask test torch")

    class Net(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 1)

        def training_step(self, batch, _):
            x, y = batch
            pred = self.layer(x)
            return ((pred.squeeze(1) if right else pred) - y).pow(2).mean()

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())

    data = torch.utils.data.TensorDataset(torch.randn(10, 3), torch.randn(10))
    callback = simulcast.torch.LightningCallback(steps=2)
    options = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "accelerator": "cpu",
               "enable_model_summary": False, "default_root_dir": tmp_path, "max_epochs": 2}  # fmt: skip
    trainer = lightning.Trainer(callbacks=[callback], **options)
    trainer.fit(Net(), torch.utils.data.DataLoader(data, batch_size=4))
    assert len(callback.watch.confirmed) == (0 if right else 1) and depth() == 0
    if right:
        return
    assert callback.watch.confirmed[0].place.file == __file__
    trainer = lightning.Trainer(callbacks=[simulcast.torch.LightningCallback("SC102=deny")], **options)
    with pytest.raises(simulcast.BroadcastError):
        trainer.fit(Net(), torch.utils.data.DataLoader(data, batch_size=4))
    assert depth() == 0


@pytest.mark.skipif(sys.version_info < (3, 11), reason="notes")
def test_lightning_explains_what_ends_a_training(tmp_path):
    lightning = pytest.importorskip("lightning", reason="Lightning is not installed: cargo xtask test torch")

    class Net(lightning.LightningModule):
        def training_step(self, batch, _):
            normal = torch.distributions.Normal(torch.zeros(3), 1.0, validate_args=True)
            return normal.log_prob(batch)

        def configure_optimizers(self):
            return None

    callback = simulcast.torch.LightningCallback()
    trainer = lightning.Trainer(callbacks=[callback], logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                accelerator="cpu", enable_model_summary=False, default_root_dir=tmp_path)  # fmt: skip
    with pytest.raises(ValueError) as caught:
        trainer.fit(Net(), torch.utils.data.DataLoader(torch.randn(4), batch_size=4))
    assert any("batch has 4, normal has 3" in note for note in caught.value.__notes__) and depth() == 0


@pytest.mark.parametrize("right", [True, False])
def test_hugging_face(right, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed: cargo xtask test torch")
    pytest.importorskip("accelerate", reason="accelerate is not installed: cargo xtask test torch")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 1)

        def forward(self, x, labels):
            pred = self.layer(x)
            return {"loss": ((pred.squeeze(1) if right else pred) - labels).pow(2).mean()}

    data = [{"x": torch.randn(3), "labels": torch.randn(())} for _ in range(10)]
    callback = simulcast.torch.TrainerCallback(steps=2)
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), per_device_train_batch_size=4, num_train_epochs=2, report_to=[], use_cpu=True,
        save_strategy="no", disable_tqdm=True, remove_unused_columns=False,
    )  # fmt: skip
    transformers.Trainer(Net(), arguments, train_dataset=data, callbacks=[callback]).train()
    assert len(callback.watch.confirmed) == (0 if right else 1) and depth() == 0


def test_what_is_missing_is_said():
    with pytest.raises(AttributeError, match="NoCallback"):
        simulcast.torch.NoCallback  # noqa: B018
    with warnings.catch_warnings():
        assert simulcast.torch.LightningCallback is simulcast.torch.LightningCallback
