"""Stand-ins for ImageNet and Open Images, made of the pictures of Tux Paint.

They are in the archives and features of the real sets, and so run the same code. Nothing that is
learnt from them says anything about the real ones: there are some hundred pictures, each on several
grounds. In ImageNet's training archive they are under their true synsets; labels of its validation
archive are TFDS's own, by the order of the names of files, and so WRONG for these pictures.
"""

from __future__ import annotations

import io
import pathlib
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from PIL import Image

STAMPS = "usr/share/tuxpaint/stamps"
GROUNDS = ("white", "lightgrey", "skyblue", "olivedrab")
LARGEST = 400  # pixels along the longer side
NUM_VALIDATION = 40

# Synset of ImageNet to pictures of it.
SYNSETS: Mapping[str, str] = {
    "n01514668": "animals/birds/rooster",
    "n01514859": "animals/birds/hen animals/birds/chicken_profile",
    "n01518878": "animals/birds/ostrich",
    "n01582220": "animals/birds/magpie",
    "n01616318": "animals/birds/vulture",
    "n01677366": "animals/lizards/iguana",
    "n01806143": "animals/birds/peacock",
    "n01820546": "animals/birds/rainbow-lorikeet",
    "n01843383": "animals/birds/tucan",
    "n01847000": "animals/birds/drake",
    "n01855672": "animals/birds/gander",
    "n01872401": "animals/mammals/echidna",
    "n01882714": "animals/marsupials/koala",
    "n01883070": "animals/marsupials/wombat",
    "n02007558": "animals/birds/pink_flamingo",
    "n02051845": "animals/birds/pelican",
    "n02071294": "animals/mammals/aquatic/orca",
    "n02077923": "animals/mammals/aquatic/sea_lion",
    "n02115641": "animals/mammals/dogs/dingo",
    "n02129165": "animals/mammals/cats/lion animals/mammals/cats/lion-2",
    "n02129604": "animals/mammals/cats/tiger animals/mammals/cats/tiger_sumatran",
    "n02132136": "animals/mammals/bears/bear animals/mammals/bears/european-bear",
    "n02206856": "animals/insects/bee",
    "n02226429": "animals/insects/grasshopper",
    "n02236044": "animals/insects/mantis",
    "n02361337": "animals/mammals/rodents/marmot",
    "n02363005": "animals/mammals/rodents/beaver",
    "n02391049": "animals/mammals/equines/zebra",
    "n02395406": "animals/mammals/pig animals/mammals/pig_golden animals/mammals/pig_golden2",
    "n02396427": "animals/mammals/wildboar",
    "n02398521": "animals/mammals/hippopotamus",
    "n02410509": "animals/mammals/bovines/bison",
    "n02412080": "animals/mammals/bovines/ram",
    "n02437312": "animals/mammals/camel/dromedary",
    "n02444819": "animals/mammals/aquatic/otter",
    "n02447366": "animals/mammals/badger",
    "n02480855": "animals/mammals/apes/gorilla",
    "n02481823": "animals/mammals/apes/chimp",
    "n02504458": "animals/mammals/elephant",
    "n02607072": "animals/fish/clownfish",
    "n02643566": "animals/fish/lionfish",
    "n02676566": "hobbies/music/string/guitar_classical",
    "n02690373": "vehicles/flight/planes/747",
    "n02747177": "household/garbagecan household/wheelie_bin",
    "n02782093": "vehicles/flight/balloon360",
    "n02802426": "sports/basketball",
    "n02804610": "hobbies/music/wind/bassoon",
    "n02841315": "hobbies/binoculars",
    "n02948072": "seasonal/candle seasonal/hanukkah/holiday_candle",
    "n02992211": "hobbies/music/string/cello",
    "n03026506": "seasonal/christmas/stocking",
    "n03063599": "household/dishes/mug",
    "n03272010": "hobbies/music/string/guitar_electric",
    "n03345487": "vehicles/emergency/firetruck vehicles/emergency/cartoon/fire_engine",
    "n03379051": "sports/cartoon/football_helmet_front sports/cartoon/football_helmet_side",
    "n03417042": "vehicles/garbagetruck",
    "n03481172": "household/tools/hammer",
    "n03590841": "seasonal/halloween/jackolantern_mean",
    "n03837869": "town/monuments/cartoon/obelisk",
    "n03950228": "household/dishes/pitcher_small",
    "n04254680": "sports/soccer",
    "n04259630": "clothes/hats/sombrero",
    "n04285008": "vehicles/auto/sportscar2",
    "n04317175": "medical/stethoscope",
    "n04376876": "medical/syringe",
    "n04398044": "household/dishes/teapot",
    "n04399382": "animals/mammals/bears/cartoon/teddy_bear animals/mammals/bears/toys/edward_bear",
    "n04409515": "sports/tennis_ball",
    "n04458633": "town/monuments/cartoon/totem",
    "n04482393": "vehicles/cycle/pink_tricycle",
    "n04536866": "hobbies/music/string/violin",
    "n06874185": "town/roadsigns/stoplight_01_red town/roadsigns/stoplight_02_yellow "
    "town/roadsigns/stoplight_03_green",
    "n07714990": "food/vegetables/broccoli",
    "n07720875": "food/vegetables/pepper food/vegetables/yellowpepper",
    "n07742313": "food/fruit/apple_granny_smith food/fruit/apple_green",
    "n07745940": "food/fruit/strawberry food/fruit/Strawberry2 food/fruit/cartoon/strawberry",
    "n07747607": "food/fruit/orange food/fruit/orange_seville food/fruit/sliced_orange",
    "n07749582": "food/fruit/lemon food/fruit/cartoon/lemon food/fruit/cartoon/lemon_slice",
    "n07753275": "food/fruit/pineapple food/fruit/cartoon/pineapple",
    "n07753592": "food/fruit/banana food/fruit/cartoon/banana",
    "n07760859": "food/fruit/cherimoya",
    "n07768694": "food/fruit/pomegranate",
    "n07873807": "food/pizza",
    "n12144580": "food/vegetables/corn",
}
NUM_TRAIN = len(GROUNDS) * sum(len(names.split()) for names in SYNSETS.values())

# Folder to classes of Open Images that its pictures are of; the first folder that fits counts.
CLASSES: Mapping[str, Sequence[str]] = {
    "animals/birds": ("/m/015p6", "/m/0jbk"),  # bird, animal
    "animals/fish": ("/m/0ch_cf", "/m/0jbk"),  # fish
    "animals/insects": ("/m/03vt0", "/m/0jbk"),  # insect
    "animals/mammals": ("/m/04rky", "/m/0jbk"),  # mammal
    "animals": ("/m/0jbk",),
    "food/fruit": ("/m/02xwb", "/m/02wbm"),  # fruit, food
    "food": ("/m/02wbm",),
    "plants/flowers": ("/m/0c9ph5", "/m/05s2s"),  # flower, plant
    "plants/trees": ("/m/07j7r", "/m/05s2s"),  # tree
    "plants": ("/m/05s2s",),
    "town/houses": ("/m/0cgh4",),  # building
    "vehicles/auto": ("/m/0k4j", "/m/07yv9"),  # car, vehicle
    "vehicles/flight/planes": ("/m/0cmf2", "/m/07yv9"),  # airplane
    "vehicles/ship": ("/m/019jd", "/m/07yv9"),  # boat
    "vehicles": ("/m/07yv9",),
    "household": (),  # with what a machine and people say that is not there
    "sports": (),
}
PERSON = "/m/01g317"
HUMAN = ("verification", "crowdsource-verification")


def build_imagenet(package: pathlib.Path, data_dir: pathlib.Path) -> None:
    """Puts ImageNet's archives where TFDS looks for them, and lets it make its records.

    Args:
        package: a folder that holds what is in the package.
        data_dir: the TFDS data folder.
    """
    import tensorflow_datasets as tfds

    manual_dir = data_dir / "downloads" / "manual"
    manual_dir.mkdir(parents=True, exist_ok=True)
    train = {f"{s}.tar": _tar(dict(_train_pictures(package, s))) for s in SYNSETS}
    (manual_dir / "ILSVRC2012_img_train.tar").write_bytes(_tar(train))
    names = " ".join(SYNSETS.values()).split()[:NUM_VALIDATION]
    validation = {
        f"ILSVRC2012_val_{number:08d}.JPEG": _jpeg(_picture(package, name, "white"))
        for number, name in enumerate(names, 1)
    }
    (manual_dir / "ILSVRC2012_img_val.tar").write_bytes(_tar(validation))
    _make_records(tfds.builder("imagenet2012", data_dir=data_dir))


def build_open_images(package: pathlib.Path, data_dir: pathlib.Path) -> None:
    """Lets TFDS make records of Open Images V4 of these pictures instead of its own.

    Args:
        package: a folder that holds what is in the package.
        data_dir: the TFDS data folder.
    """
    import tensorflow_datasets as tfds

    examples = list(_open_images(package))
    parts = {"train": (0, 3), "validation": (3, 4), "test": (4, 5)}
    builder = tfds.builder("open_images_v4/original", data_dir=data_dir)
    builder._split_generators = lambda dl_manager: {
        split: iter([e for i, e in enumerate(examples) if first <= i % 5 < end])
        for split, (first, end) in parts.items()
    }
    _make_records(builder)


def _make_records(builder: Any) -> None:
    """In two files a split, and with no look at a bucket of finished records."""
    import tensorflow_datasets as tfds

    settings = tfds.download.DownloadConfig(try_download_gcs=False, num_shards=2)
    builder.download_and_prepare(download_config=settings)


def _train_pictures(package: pathlib.Path, synset: str) -> Iterator[tuple[str, bytes]]:
    """Pictures of a synset by file name, some of them as odd as some of ImageNet's."""
    names = SYNSETS[synset].split()
    encoders = {"n07753592_7.JPEG": _png, "n02129604_7.JPEG": _grey, "n02077923_3.JPEG": _cmyk}
    for number, (ground, name) in enumerate((g, n) for g in GROUNDS for n in names):
        file_name = f"{synset}_{number}.JPEG"
        encode = encoders.get(file_name, _jpeg)
        yield file_name, encode(_picture(package, name, ground))


def _open_images(package: pathlib.Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Examples by their key, in the order of the names of files."""
    stamps = package / STAMPS
    paths = (path.relative_to(stamps).as_posix() for path in sorted(stamps.rglob("*.png")))
    for number, name in enumerate(path.removesuffix(".png") for path in paths):
        folder = next((f for f in CLASSES if name.startswith(f"{f}/")), None)
        if folder is None:
            continue
        objects = [
            {"label": label, "confidence": 10, "source": HUMAN[number % 2]}
            for label in CLASSES[folder]
        ]
        if number % 3:
            objects.append({"label": PERSON, "confidence": 0, "source": HUMAN[0]})
        if number % 4:
            objects.append({"label": PERSON, "confidence": 7, "source": "machine"})
        file_name = f"{number:016x}.jpg"
        yield (
            file_name,
            {
                "image": io.BytesIO(_jpeg(_picture(package, name, "white"))),
                "image/filename": file_name,
                "objects": objects,
                "objects_trainable": objects,
                "bobjects": [],
            },
        )


def _picture(package: pathlib.Path, name: str, ground: str) -> Image.Image:
    stamp = Image.open(package / STAMPS / f"{name}.png").convert("RGBA")
    stamp.thumbnail((LARGEST, LARGEST))
    picture = Image.new("RGBA", stamp.size, ground)
    picture.alpha_composite(stamp)
    return picture.convert("RGB")


def _jpeg(picture: Image.Image) -> bytes:
    return _encoded(picture, "JPEG", quality=90)


def _grey(picture: Image.Image) -> bytes:
    return _encoded(picture.convert("L"), "JPEG", quality=90)


def _cmyk(picture: Image.Image) -> bytes:
    return _encoded(picture.convert("CMYK"), "JPEG", quality=90)


def _png(picture: Image.Image) -> bytes:
    return _encoded(picture, "PNG")


def _encoded(picture: Image.Image, kind: str, **settings: Any) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, kind, **settings)
    return stream.getvalue()


def _tar(files: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()
