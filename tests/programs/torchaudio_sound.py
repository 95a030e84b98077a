"""Spectra, effects, beams and untrained models of torchaudio: what its compiled parts do not do."""

import torch
import torchaudio.functional as F
import torchaudio.transforms as T
from report import draw_on_the_cpu, finish, report
from torchaudio import models

device = "cuda" if torch.cuda.is_available() else "cpu"
draw_on_the_cpu()
g = torch.Generator().manual_seed(0)
time = torch.arange(4000) / 8000
wave = torch.stack([torch.sin(2 * torch.pi * f * time) for f in (220.0, 523.0)])
wave = (wave + 0.1 * torch.randn(2, 4000, generator=g)).to(device)
kinds = {
    "spectrogram": T.Spectrogram(n_fft=256),
    "mel": T.MelSpectrogram(8000, n_fft=256, n_mels=24),
    "MFCC": T.MFCC(8000, 12, melkwargs={"n_fft": 256, "n_mels": 24}),
    "LFCC": T.LFCC(8000, n_filter=24, n_lfcc=12, speckwargs={"n_fft": 256}),
    "resampled": T.Resample(8000, 6000),
    "kaiser": T.Resample(8000, 11025, resampling_method="sinc_interp_kaiser"),
    "law": T.MuLawEncoding(),
    "faded": T.Fade(400, 400, "exponential"),
    "volume": T.Vol(6.0, "db"),
    "centroid": T.SpectralCentroid(8000, n_fft=256),
    "pitch": T.PitchShift(8000, 3, n_fft=256),
    "speed": T.Speed(8000, 1.1),
    "emphasis": T.Preemphasis(),
}
for name, kind in kinds.items():
    x = wave.clone()
    y = kind.to(device)(x.requires_grad_())
    y = y[0] if isinstance(y, tuple) else y
    report(name, y)
    if y.requires_grad and name != "pitch":  # its vocoder sums up what was rounded
        y.abs().mean().backward()
        report(f"{name}: gradient", x.grad * 1e3)
power = kinds["spectrogram"](wave)
report("decibels", T.AmplitudeToDB("power", 80)(power))
report("deltas", T.ComputeDeltas()(power))
report("normalized", T.SlidingWindowCmn(cmn_window=20)(power.transpose(1, 2)))
complex_ = T.Spectrogram(n_fft=256, power=None).to(device)(wave)
report(
    "stretched",
    T.TimeStretch(fixed_rate=1.2, n_freq=129, hop_length=128).to(device)(complex_).abs(),
)
report("inverse", T.InverseSpectrogram(n_fft=256).to(device)(complex_, 4000))
torch.manual_seed(1)
report("Griffin-Lim", T.GriffinLim(n_fft=256, n_iter=4, rand_init=False).to(device)(power))
report("inverse mel", T.InverseMelScale(129, 24, 8000).to(device)(kinds["mel"](wave)))
torch.manual_seed(2)
masked = T.TimeMasking(10)(T.FrequencyMasking(20)(power))
report("masked", masked)
report("augmented", T.SpecAugment(2, 8, 2, 12)(power))

x = wave.clone().requires_grad_()
filters = {
    "flanger": F.flanger(x, 8000),
    "convolved": F.fftconvolve(x, x.flip(1)[:, :50]),
    "added": F.add_noise(x, x.flip(0).detach(), torch.tensor([3.0, 6.0], device=device)),
    "contrast": F.contrast(x),
}
for name, y in filters.items():
    report(name, y)
report("banks", F.melscale_fbanks(65, 0.0, 4000.0, 20, 8000, norm="slaney"))
report("pitch of", F.detect_pitch_frequency(wave, 8000))
report("wrapped", F.mask_along_axis(power, 10, 0.0, 1))
report("distance", [F.edit_distance("a small cat", "small cats")])

multi = torch.randn(3, 2000, generator=g).to(device)
spectrum = T.Spectrogram(n_fft=128, power=None).to(device)(multi).to(torch.complex128)
speech, noise = torch.rand(2, 65, spectrum.shape[-1], generator=g).double().to(device)
mvdr = T.MVDR(ref_channel=0, solution="ref_channel").to(device)(spectrum, speech, noise)
report("beam", torch.view_as_real(mvdr))
psd = T.PSD()(spectrum, speech)
report("density", torch.view_as_real(psd))
report("steering", torch.view_as_real(F.rtf_evd(psd)).abs())

torch.manual_seed(3)
nets = {
    "Conv-TasNet": (models.ConvTasNet(2, 16, 32, 3, 8, 16, 2, 1), (multi[:, None, :800],)),
    "DeepSpeech": (models.DeepSpeech(24, 16, 5), (torch.randn(2, 1, 10, 24, generator=g),)),
    "Wav2Letter": (models.Wav2Letter(5, "mfcc", 12), (torch.randn(2, 12, 60, generator=g),)),
    "Conformer": (
        models.Conformer(16, 2, 32, 2, 5),
        (torch.randn(2, 12, 16, generator=g), torch.tensor([12, 9])),
    ),
    "Emformer": (
        models.Emformer(16, 2, 32, 2, 4, right_context_length=1),
        (torch.randn(2, 9, 16, generator=g), torch.tensor([8, 7])),
    ),
    "wav2vec": (
        models.wav2vec2_model(
            extractor_mode="group_norm",
            extractor_conv_layer_config=[(16, 10, 5), (16, 3, 2), (16, 2, 2)],
            extractor_conv_bias=False,
            encoder_embed_dim=16,
            encoder_projection_dropout=0.0,
            encoder_pos_conv_kernel=8,
            encoder_pos_conv_groups=2,
            encoder_num_layers=2,
            encoder_num_heads=2,
            encoder_attention_dropout=0.0,
            encoder_ff_interm_features=32,
            encoder_ff_interm_dropout=0.0,
            encoder_dropout=0.0,
            encoder_layer_norm_first=False,
            encoder_layer_drop=0.0,
            aux_num_out=6,
        ),
        (wave, torch.tensor([4000, 3000])),
    ),
    "WaveRNN": (
        models.WaveRNN(
            [2, 2, 4],
            8,
            16,
            n_res_block=1,
            n_rnn=16,
            n_fc=16,
            kernel_size=5,
            n_freq=12,
            n_hidden=8,
            n_output=8,
        ),
        (torch.randn(2, 1, 16 * 4, generator=g), torch.randn(2, 1, 12, 8, generator=g)),
    ),
}
for name, (model, inputs) in nets.items():
    model.eval().to(device)
    inputs = [v.to(device) for v in inputs]
    out = model(*inputs)
    out = out[0] if isinstance(out, tuple) else out
    report(name, out)
    model.train().double()
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    out = model(*(v.double() if v.is_floating_point() else v for v in inputs))
    out = out[0] if isinstance(out, tuple) else out
    out.square().mean().backward()
    norms = [p.grad.norm().item() for p in model.parameters() if p.grad is not None]
    report(f"{name}: gradients", [n for n in norms if n > 1e-3 * max(norms)])
finish()
