"""Problems to learn from: networks planted on purpose, and files that the user keeps in a data folder.

- :mod:`thresher.data.planted` draws sparse networks and the data they label.
- :mod:`thresher.data.mnist` reads the MNIST files and splits them as the paper does.
- :mod:`thresher.data.cifar` reads CIFAR-10's test images.
- :mod:`thresher.data.images` turns images into regression problems by Fourier features.
- :mod:`thresher.data.folder` finds the data folder.
- :mod:`thresher.data.fetch` fills it from OpenML, where that is asked for.
- :mod:`thresher.data.tables` reads tables; :mod:`thresher.data.prepared` makes them ready to train on.
- :func:`open_rows` opens rows that stay on disk.

Import other names from the modules themselves. Nothing here needs torch.
"""

from thresher.data.opening import open_rows

__all__ = ["open_rows"]
