# Written by `make gen` from the schemas of the operators: do not edit.
from ._C import _fft as _ops
from ._tensor.spectral import fftfreq as fftfreq, rfftfreq as rfftfreq

fft = _ops.fft
fft2 = _ops.fft2
fftn = _ops.fftn
fftshift = _ops.fftshift
hfft = _ops.hfft
hfft2 = _ops.hfft2
hfftn = _ops.hfftn
ifft = _ops.ifft
ifft2 = _ops.ifft2
ifftn = _ops.ifftn
ifftshift = _ops.ifftshift
ihfft = _ops.ihfft
ihfft2 = _ops.ihfft2
ihfftn = _ops.ihfftn
irfft = _ops.irfft
irfft2 = _ops.irfft2
irfftn = _ops.irfftn
rfft = _ops.rfft
rfft2 = _ops.rfft2
rfftn = _ops.rfftn
