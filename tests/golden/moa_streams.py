"""CRC-32 of the first 10,000 records of MOA's own generators (release 2024.07.0), x and y apart.

Made with ``benchmarks.peers.moa.records(stream, 10_000)``: ``zlib.crc32(x.tobytes())`` of x float64[n, d] and
of y int32[n], little-endian. The streams are named as on the command line of MOA; beside them ours.
"""

STREAMS = [
    ("generators.SEAGenerator -f 1", "sea", {}, 0xA262C569, 0x0B357C9A),
    (
        "generators.SEAGenerator -f 3 -i 7 -p 25",
        "sea",
        {"function": 3, "seed": 7, "noise": 0.25},
        0x00DA6189,
        0x2A5E3097,
    ),
    (
        "generators.SEAGenerator -f 2 -b -n 0",
        "sea",
        {"function": 2, "balanced": True},
        0xD9339CC3,
        0x53A2F246,
    ),
    ("generators.LEDGenerator", "led", {}, 0xC1FD786A, 0xB7A2C748),
    ("generators.LEDGenerator -i 99 -n 3", "led", {"seed": 99, "noise": 0.03}, 0xA0B1C4C9, 0x006337D5),
    ("generators.AgrawalGenerator -f 1", "agrawal", {"function": 1}, 0xC72BB410, 0x9F96A9F2),
    ("generators.AgrawalGenerator -f 2", "agrawal", {"function": 2}, 0xC72BB410, 0xB25D0B9C),
    ("generators.AgrawalGenerator -f 3", "agrawal", {"function": 3}, 0xC72BB410, 0xEC7540AA),
    ("generators.AgrawalGenerator -f 4", "agrawal", {"function": 4}, 0xC72BB410, 0xE6A1E3A8),
    (
        "generators.AgrawalGenerator -f 4 -b -i 5 -p 0.1",
        "agrawal",
        {"function": 4, "balanced": True, "seed": 5, "perturbation": 0.1},
        0x78BB3D70,
        0x3D635B4D,
    ),
    ("generators.RandomRBFGenerator", "rbf", {}, 0xF37CF768, 0xB7F6F052),
    (
        "generators.RandomRBFGenerator -c 15 -a 200 -n 100 -r 3 -i 4",
        "rbf",
        {"classes": 15, "attributes": 200, "centroids": 100, "model_seed": 3, "seed": 4},
        0x49842145,
        0xB67775D1,
    ),
    (
        "generators.RandomRBFGenerator -c 5 -a 50",
        "rbf",
        {"classes": 5, "attributes": 50},
        0xB731BE34,
        0xDEB6C45B,
    ),
]
