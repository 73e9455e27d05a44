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
    ("generators.STAGGERGenerator -f 2", "stagger", {"function": 2}, 0xD4D63E6D, 0xCBCEA434),
    (
        "generators.STAGGERGenerator -f 1 -b -i 3",
        "stagger",
        {"balanced": True, "seed": 3},
        0x6F7A9784,
        0x3D635B4D,
    ),
    ("generators.WaveformGenerator", "waveform", {}, 0x005564B8, 0x285C6573),
    (
        "generators.WaveformGenerator -n -i 8",
        "waveform",
        {"irrelevant": True, "seed": 8},
        0xF604E72E,
        0x95102DC9,
    ),
    ("generators.RandomTreeGenerator", "random_tree", {}, 0xE3ADC9B4, 0xAAA29823),
    (
        "generators.RandomTreeGenerator -c 25 -o 20 -u 20 -r 4 -i 5 -d 6 -l 2 -f 0.3",
        "random_tree",
        {
            "classes": 25,
            "nominal": 20,
            "numeric": 20,
            "model_seed": 4,
            "seed": 5,
            "depth": 6,
            "first_leaf_level": 2,
            "leaf_share": 0.3,
        },
        0x069656E7,
        0xF0A07D95,
    ),
    ("generators.LEDGeneratorDrift -d 5", "led", {"drift": 5}, 0x337C0873, 0xB7A2C748),
    (
        "ConceptDriftStream -s (generators.LEDGeneratorDrift -d 1) -d (ConceptDriftStream"
        " -s (generators.LEDGeneratorDrift -d 3) -d (ConceptDriftStream"
        " -s (generators.LEDGeneratorDrift -d 5) -d (generators.LEDGeneratorDrift -d 7)"
        " -w 500 -p 2500) -w 500 -p 2500) -w 500 -p 2500 -r 6",
        "drift",
        {
            "before": "led?drift=1",
            "after": "drift?width=500&position=2500&before=(led?drift=3)&after="
            "(drift?width=500&position=2500&before=(led?drift=5)&after=(led?drift=7))",
            "position": 2500,
            "width": 500,
            "seed": 6,
        },
        0x0628EB19,
        0x649C18BB,
    ),
]
