"""Experiments of Rahbar, Ye, Chen and Chehreghani on buying features (UFODT)."""
