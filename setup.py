"""Says which files make the wheel; pyproject.toml says the rest.

`gin_configs/` stands beside the package in the checkout and inside it in the wheel.
"""

from setuptools import find_packages, setup

setup(
    packages=[
        *find_packages(include=["data_parallelism", "data_parallelism.*"]),
        "data_parallelism.gin_configs",
    ],
    package_dir={"data_parallelism.gin_configs": "gin_configs"},
    package_data={
        "data_parallelism": ["py.typed"],
        "data_parallelism.analysis": ["*.html"],
        "data_parallelism.reference": ["*.csv", "*.json"],
        "data_parallelism.gin_configs": ["**/*.gin"],
    },
    include_package_data=False,
)
