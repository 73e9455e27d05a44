"""SGBT: streaming gradient boosting of trees that predict numbers, in compiled code."""
